"use strict";
// Code gets its colours in the browser; the page holds it plain. Shared by pages on their own and by the app.
const clewColour = (() => {
  const words = (s) => s.split(" ").join("|");
  const C = "if else for while do switch case default break continue return try catch finally throw new class static const true false null this import export in of";
  const KEYWORDS = { python: "and as assert async await break class continue def del elif else except False finally for from global if import in is lambda None nonlocal not or pass raise return True try while with yield self match case",
    javascript: C + " var let function async await yield typeof instanceof undefined extends super from interface type enum implements readonly public private as void",
    java: C + " public private protected void int long double boolean char final extends implements interface package throws super enum var fun val when func let struct switch self guard using namespace string",
    c: C + " int long double float char void unsigned signed struct union enum typedef sizeof auto bool nullptr template typename namespace using public private virtual override delete inline extern",
    rust: "as async await break const continue crate else enum extern false fn for if impl in let loop match mod move mut pub ref return self Self static struct super trait true type unsafe use where while dyn",
    go: "break case chan const continue default defer else fallthrough for func go goto if import interface map package range return select struct switch type var nil true false string int error bool byte",
    sh: "if then else elif fi for while until do done case esac in function return exit export local set cd echo source eval exec trap",
    sql: "select from where and or not insert into values update set delete create table index view drop alter join left right inner outer on group by order having limit as null is primary key references distinct union case when then else end",
    ruby: "def end class module if elsif else unless while until do begin rescue ensure return yield nil true false self require and or not in then case when puts",
    json: "true false null", css: "important", elisp: "defun let setq if when unless cond lambda defvar defcustom progn nil require provide", lua: "and break do else elseif end false for function if in local nil not or repeat return then true until while",
    php: C + " function public private protected echo namespace use extends array foreach as fn" };
  const ALIAS = { py: "python", js: "javascript", ts: "javascript", typescript: "javascript", jsx: "javascript", tsx: "javascript", cpp: "c", "c++": "c", csharp: "java", kotlin: "java", swift: "java", rs: "rust", bash: "sh", shell: "sh", zsh: "sh", console: "sh", yml: "yaml", rb: "ruby", golang: "go", scss: "css", toml: "yaml", jsonc: "json", "emacs-lisp": "elisp", el: "elisp", h: "c", cc: "c", hpp: "c", cs: "java", kt: "java", mjs: "javascript", cjs: "javascript" };
  const HASH = new Set(["python", "sh", "yaml", "ruby", "toml", "php"]), SLASH = new Set(["javascript", "java", "c", "rust", "go", "css", "php", "json"]), DASH = new Set(["sql", "lua"]);
  // Some tools number the lines that they show.
  const NUMBER = /^[ \t]*\d+(?:→|\t)/;
  const rules = new Map();
  const rule = (name, isNumbered) => {
    const key = `${name} ${isNumbered}`;
    if (!rules.has(key)) {
      const comments = isNumbered ? ["^[ \\t]*\\d+(?:→|\\t)"] : [];
      if (HASH.has(name)) comments.push("(?<![\\w$&{])#.*");
      if (SLASH.has(name)) comments.push("(?<!:)\\/\\/.*", "\\/\\*[^]*?\\*\\/");
      if (DASH.has(name)) comments.push("--.*");
      if (name === "elisp") comments.push(";.*");
      const strings = (name === "python" ? ['"""[^]*?"""', "'''[^]*?'''"] : []).concat(['"(?:\\\\.|[^"\\\\\\n])*"', ...(name === "rust" || name === "elisp" ? [] : ["'(?:\\\\.|[^'\\\\\\n])*'"]), ...(name === "javascript" || name === "go" ? ["`(?:\\\\.|[^`\\\\])*`"] : [])]);
      const keys = KEYWORDS[name] ? `\\b(?:${words(KEYWORDS[name])})\\b` : name === "yaml" ? "^[ \\t-]*[\\w.\"-]+(?=\\s*[:=])" : "(?!)";
      rules.set(key, new RegExp(`(${comments.join("|") || "(?!)"})|(${strings.join("|")})|(\\b\\d[\\w.]*)|(${keys})`, name === "sql" ? "gim" : "gm"));
    }
    return rules.get(key);
  };
  const KINDS = ["co", "st", "nu", "kw"];
  const colour = (el) => {
    if (el.dataset.done) return;
    el.dataset.done = "1";
    let name = el.className.slice(2); name = ALIAS[name] || name;
    const source = el.textContent;
    if (el.childElementCount || source.length > 50000 || !(KEYWORDS[name] || name === "yaml")) return;
    const out = document.createDocumentFragment(); let at = 0;
    for (const match of source.matchAll(rule(name, NUMBER.test(source)))) {
      if (!match[0]) continue;
      out.append(source.slice(at, match.index));
      const span = document.createElement("span");
      span.className = KINDS[[1, 2, 3, 4].findIndex((n) => match[n] !== undefined)];
      span.textContent = match[0]; out.append(span); at = match.index + match[0].length;
    }
    out.append(source.slice(at)); el.replaceChildren(out);
  };
  return colour;
})();
