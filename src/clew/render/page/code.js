"use strict";
// Colours code in the browser, for exported pages and the web app. The HTML holds the code plain.
const clewColour = (() => {
  const C_LIKE =
    "if else for while do switch case default break continue return try catch finally throw new class " +
    "static const true false null this import export in of";
  const KEYWORDS = {
    python:
      "and as assert async await break class continue def del elif else except False finally for from " +
      "global if import in is lambda None nonlocal not or pass raise return True try while with yield self " +
      "match case",
    javascript:
      C_LIKE +
      " " +
      "var let function async await yield typeof instanceof undefined extends super from interface type " +
      "enum implements readonly public private as void",
    java:
      C_LIKE +
      " " +
      "public private protected void int long double boolean char final extends implements interface " +
      "package throws super enum var fun val when func let struct switch self guard using namespace string",
    c:
      C_LIKE +
      " " +
      "int long double float char void unsigned signed struct union enum typedef sizeof auto bool nullptr " +
      "template typename namespace using public private virtual override delete inline extern",
    rust:
      "as async await break const continue crate else enum extern false fn for if impl in let loop match " +
      "mod move mut pub ref return self Self static struct super trait true type unsafe use where while dyn",
    go:
      "break case chan const continue default defer else fallthrough for func go goto if import interface " +
      "map package range return select struct switch type var nil true false string int error bool byte",
    sh:
      "if then else elif fi for while until do done case esac in function return exit export local set cd " +
      "echo source eval exec trap",
    sql:
      "select from where and or not insert into values update set delete create table index view drop alter " +
      "join left right inner outer on group by order having limit as null is primary key references " +
      "distinct union case when then else end",
    ruby:
      "def end class module if elsif else unless while until do begin rescue ensure return yield nil true " +
      "false self require and or not in then case when puts",
    json:
      "true false null",
    css:
      "important",
    elisp:
      "defun let setq if when unless cond lambda defvar defcustom progn nil require provide",
    lua:
      "and break do else elseif end false for function if in local nil not or repeat return then true until " +
      "while",
    php:
      C_LIKE +
      " " +
      "function public private protected echo namespace use extends array foreach as fn",
  };
  const ALIASES = {
    py: "python",
    js: "javascript",
    ts: "javascript",
    typescript: "javascript",
    jsx: "javascript",
    tsx: "javascript",
    cpp: "c",
    "c++": "c",
    csharp: "java",
    kotlin: "java",
    swift: "java",
    rs: "rust",
    bash: "sh",
    shell: "sh",
    zsh: "sh",
    console: "sh",
    yml: "yaml",
    rb: "ruby",
    golang: "go",
    scss: "css",
    toml: "yaml",
    jsonc: "json",
    "emacs-lisp": "elisp",
    el: "elisp",
    h: "c",
    cc: "c",
    hpp: "c",
    cs: "java",
    kt: "java",
    mjs: "javascript",
    cjs: "javascript",
  };
  const HASH_COMMENTS = new Set(["python", "sh", "yaml", "ruby", "toml", "php"]);
  const SLASH_COMMENTS = new Set(["javascript", "java", "c", "rust", "go", "css", "php", "json"]);
  const DASH_COMMENTS = new Set(["sql", "lua"]);
  const MAX_CHARS = 50_000;
  // Some tools number the lines of a file.
  const LINE_NUMBER = "^[ \\t]*\\d+(?:→|\\t)";
  const NUMBERED = new RegExp(LINE_NUMBER);
  const NOTHING = "(?!)";
  const CLASSES = ["co", "st", "nu", "kw"];

  const commentPatterns = (language, isNumbered) => {
    const patterns = isNumbered ? [LINE_NUMBER] : [];
    if (HASH_COMMENTS.has(language)) {
      patterns.push("(?<![\\w$&{])#.*");
    }
    if (SLASH_COMMENTS.has(language)) {
      patterns.push("(?<!:)\\/\\/.*", "\\/\\*[^]*?\\*\\/");
    }
    if (DASH_COMMENTS.has(language)) {
      patterns.push("--.*");
    }
    if (language === "elisp") {
      patterns.push(";.*");
    }
    return patterns.length ? patterns : [NOTHING];
  };

  const stringPatterns = (language) => {
    const patterns = language === "python" ? ['"""[^]*?"""', "'''[^]*?'''"] : [];
    patterns.push('"(?:\\\\.|[^"\\\\\\n])*"');
    if (language !== "rust" && language !== "elisp") {
      patterns.push("'(?:\\\\.|[^'\\\\\\n])*'");
    }
    if (language === "javascript" || language === "go") {
      patterns.push("`(?:\\\\.|[^`\\\\])*`");
    }
    return patterns;
  };

  const keywordPattern = (language) => {
    if (KEYWORDS[language]) {
      return `\\b(?:${KEYWORDS[language].split(" ").join("|")})\\b`;
    }
    return language === "yaml" ? '^[ \\t-]*[\\w."-]+(?=\\s*[:=])' : NOTHING;
  };

  // One pattern per language, with a group for each of CLASSES.
  const patterns = new Map();
  const patternFor = (language, isNumbered) => {
    const key = `${language} ${isNumbered}`;
    if (!patterns.has(key)) {
      const groups = [
        commentPatterns(language, isNumbered).join("|"),
        stringPatterns(language).join("|"),
        "\\b\\d[\\w.]*",
        keywordPattern(language),
      ];
      const source = groups.map((group) => `(${group})`).join("|");
      patterns.set(key, new RegExp(source, language === "sql" ? "gim" : "gm"));
    }
    return patterns.get(key);
  };

  return (code) => {
    if (code.dataset.coloured) {
      return;
    }
    code.dataset.coloured = "1";
    const name = code.className.slice(2);
    const language = ALIASES[name] || name;
    const isKnown = KEYWORDS[language] || language === "yaml";
    const source = code.textContent;
    if (code.childElementCount || source.length > MAX_CHARS || !isKnown) {
      return;
    }
    const output = document.createDocumentFragment();
    let end = 0;
    for (const match of source.matchAll(patternFor(language, NUMBERED.test(source)))) {
      if (!match[0]) {
        continue;
      }
      const span = document.createElement("span");
      span.className = CLASSES[[1, 2, 3, 4].findIndex((group) => match[group] !== undefined)];
      span.textContent = match[0];
      output.append(source.slice(end, match.index), span);
      end = match.index + match[0].length;
    }
    output.append(source.slice(end));
    code.replaceChildren(output);
  };
})();
