"""Make secrets in carriers: texts of many syntaxes that hold a name and a value, with noise around them.

A carrier is a template with `<U>` (NAME_IN_CAPITALS), `<s>` (snake_case), `<c>` (camelCase), `<k>` (kebab-case) or
`<P>` (PascalCase) for the name, and `<V>` for the value. Every value is made at run time.
"""

from __future__ import annotations

import base64
import json
import random
import string
import urllib.parse
from collections.abc import Callable, Iterator
from typing import NamedTuple

NAMED: dict[str, list[str]] = {
    "typed": [
        'var <c> string = "<V>"', 'const <c> string = "<V>"', '<c> := "<V>"', 'let <c>: string = "<V>";',
        "private readonly <c>: string = '<V>';", 'export const <U>: Readonly<string> = "<V>";', '<s>: str = "<V>"',
        '<s>: Optional[str] = "<V>"', '<s>: Final = "<V>"', '<s>: str | None = "<V>",', 'val <c>: String = "<V>"',
        'var <c>: String? = "<V>"', 'let <s>: &str = "<V>";', 'let <s> = String::from("<V>");',
        'pub const <U>: &\'static str = "<V>";', 'static let <c>: String = "<V>"', 'char <s>[] = "<V>";',
        'const char *<s> = "<V>";', 'static const char <U>[64] = "<V>";', '#define <U> "<V>"', "#define <U> <V>",
        'std::string <s>{"<V>"};', 'String <c> = "<V>";', 'private static final String <U> = "<V>";',
        'final String <c> = "<V>";', 'public string <P> { get; set; } = "<V>";', 'string <c> = @"<V>";',
        "<c>: string := '<V>';", 'Dim <P> As String = "<V>"', 'my $<s> = "<V>";', "local <s> = '<V>'",
        'def connect(<s>: str = "<V>"):', '<c> : String\n<c> = "<V>"', 'secret val <c> = "<V>"',
        "$<s> = '<V>';", '[string]$<P> = "<V>"', '<c> = r"<V>"', '<s> = b"<V>"', "<s> <- '<V>'", '@<s> = "<V>"',
    ],
    "operator": [
        "<U>=<V>", "<U>='<V>'", 'export <U>="<V>"', "<U> = <V>", "<U>: <V>", "<U> := <V>", "<U> ?= <V>", "<U> ::= <V>",
        "<U>.='<V>'", "<s> ??= '<V>'", "<s> ||= '<V>'", "'<s>' => '<V>',", ":<s> => '<V>'", "<s>: '<V>'", "<k>: <V>",
        '"<s>": "<V>"', "'<s>': '<V>',", "<c>: `<V>`,", '"<c>" = "<V>";', "<s>=<V>;Server=db", "{ <c>: '<V>' }",
        "if (<c> === '<V>') {", 'process.env.<U> || "<V>"', "process.env.<U> ?? '<V>'", 'ENV["<U>"] || "<V>"',
        'config["<s>"] = "<V>"', "$config['<s>'] = '<V>';", 'os.environ["<U>"] = "<V>"', "${<U>:-<V>}",
        "${<U>:=<V>}", "set <U>=<V>", '$env:<U> = "<V>"', "-D<s>=<V>", "--<k>=<V>", "--set <c>=<V>",
        "<s> = (\n    '<V>'\n)", '<s>="<V>" python run.py', "- <U>=<V>", "+<U>=<V>", "12: <U>=<V>", "> <s>: <V>",
        "https://api.lindwerk.de/v1?<s>=<V>&page=2", "curl -d '<s>=<V>&user=ada' x", "X-Api-Key: <V>",
    ],
    "call": [
        'os.environ.get("<U>", "<V>")', "os.getenv('<U>', '<V>')", 'os.environ.setdefault("<U>", "<V>")',
        'System.setProperty("<s>", "<V>");', 'req.Header.Set("<k>", "<V>")', "headers.append('<k>', '<V>');",
        "define('<U>', '<V>');", 'viper.SetDefault("<s>", "<V>")', 'os.Setenv("<U>", "<V>")', 'env("<U>", "<V>")',
        'props.put("<s>", "<V>");', "localStorage.setItem('<c>', '<V>')", 'client.<s>("<V>")', '.<c>("<V>")',
        'builder.set<P>("<V>")', '<s> = SecretStr("<V>")', 'connect(host="db", <s>="<V>")',
        "config.set('<s>', '<V>')", 'putenv("<U>=<V>");', 'getenv("<U>") or "<V>"', '("<U>", "<V>"),',
        'monkeypatch.setenv("<U>", "<V>")', 'request.headers["<k>"] = "<V>"', "xhr.setRequestHeader('<k>', '<V>');",
        'Map.of("<s>", "<V>")', "<c> = new SecureString('<V>')",
    ],
    "credentials": [
        'requests.get(url, auth=("ada", "<V>"))', 'HTTPBasicAuth("ada", "<V>")', "client.login('ada', '<V>')",
        'new NetworkCredential("ada", "<V>")', "credentials = ('ada', '<V>')", "postgres://ada:<V>@db.lindwerk.de/shop",
    ],
    "pair": [
        '{"name": "<U>", "value": "<V>"}', "- name: <U>\n  value: <V>", '- name: "<U>"\n  value: "<V>"',
        '<add key="<U>" value="<V>" />', '<property name="<s>" value="<V>"/>',
        "<property>\n  <name><s></name>\n  <value><V></value>\n</property>", "<key><c></key>\n\t<string><V></string>",
        'environment {\n  name  = "<U>"\n  value = "<V>"\n}', '<input type="hidden" name="<s>" value="<V>">',
        'Content-Disposition: form-data; name="<s>"\r\n\r\n<V>\r\n--x', '{"value": "<V>", "name": "<U>"}',
        '{"key": "<U>", "type": "secret", "value": "<V>"}', '<param name="<s>" type="text" value="<V>"/>',
        "<entry key='<s>'><V></entry>", "<<s>><V></<s>>", '<<s> type="plain"><V></<s>>', "<<s>><![CDATA[<V>]]></<s>>",
        'variable "<s>" {\n  default = "<V>"\n}'.replace("default", "value"), "set { name = '<s>' value = '<V>' }",
    ],
    "next line": [
        "<s>: |\n  <V>\n", "<s>: >-\n  <V>\n", "<s>:\n  <V>\n", '"<s>":\n    "<V>"', '<s> =\\\n  "<V>"',
        "<s> = \\\n    '<V>'", "<U>=\\\n<V>", "# <s>\n\n<s>:\n\n    <V>\n",
    ],
    "shell": [
        "ENV <U> <V>", "ENV <U>=<V>", "ARG <U>=<V>", "set -gx <U> <V>", "set -x <U> '<V>'", "setenv <U> <V>",
        'setenv <U> "<V>"', "setx <U> <V>", "declare -x <U>=<V>", "readonly <U>='<V>'", "env <U>=<V> make",
        "docker run -e <U>=<V> app", "kubectl create secret generic a --from-literal=<s>=<V>",
        "heroku config:set <U>=<V>",
        "fly secrets set <U>=<V>", "npm config set <s> <V>", "git config --global <s> <V>", "x --<k> <V> y",
        "x --<k> '<V>'", 'x --<k> "<V>"', "terraform apply -var '<s>=<V>'", "aws configure set <s> <V>",
    ],
    "table": [
        "user,<s>,city\nada,<V>,Lyon\n", "<s>\tuser\n<V>\tada\n", "id;<s>\n7;<V>\n", '"id","<s>"\n"7","<V>"\n',
        "| user | <s> |\n|------|------|\n| ada | <V> |\n", "| <s> | user |\n|---|---|\n| `<V>` | ada |\n",
        "| <U> | <V> |", "| `<U>` | `<V>` | yes |",
    ],
    "sql": [
        "INSERT INTO users (name, <s>) VALUES ('ada', '<V>');", "insert into t(<s>, x) values ('<V>', 1), ('<V>', 2);",
        "UPDATE users SET <s> = '<V>' WHERE id = 7;", "WHERE <s>='<V>'", "SET <s> TO '<V>';",
    ],
}  # fmt: skip
"""Carriers with a name, by family."""

COMMANDS = [
    "docker login -u ada -p <V> r.io", "podman login -u ada --password <V> r.io", "mongosh -u ada -p <V> shop",
    "mongodump --username ada --password '<V>'", "ldapsearch -x -D cn=ada -w <V> -b dc=a", "sshpass -p <V> ssh a@b",
    "sshpass -p '<V>' scp x a@b:", "openssl rsa -in k.pem -passin pass:<V>", "openssl enc -aes-256-cbc -k <V> -in x",
    "htpasswd -b f ada <V>", "htpasswd -nbB ada '<V>'", "smbclient //srv/x -U ada%<V>", "mysql -u ada -p<V> shop",
    "mysqldump -uada -p'<V>' shop", "redis-cli -h h -a <V> ping", "curl -u ada:<V> https://ci.lindwerk.de/",
    "curl --user 'ada:<V>' https://ci.lindwerk.de/", "echo <V> | sudo -S ls", "echo '<V>' | sudo -S ls",
    "echo 'ada:<V>' | chpasswd", "echo ada:<V> | sudo chpasswd", "gpg --batch --passphrase <V> -d x",
    "gh secret set TOKEN -b <V>", "gh secret set TOKEN --body '<V>'", "PGPASSWORD=<V> psql -h db",
    "MYSQL_PWD=<V> mysql", "sqlcmd -S db -U sa -P <V>", "zip -P <V> a.zip b", "unzip -P '<V>' a.zip", "7z x -p<V> a.7z",
    "keytool -list -storepass <V> -keystore k.jks", "rabbitmqctl add_user ada <V>", "wpa_passphrase net '<V>'",
    "vault login <V>", "ipmitool -H h -U ada -P <V> power status", "echo <V> | docker login -u ada --password-stdin",
    "sudo -S ls <<< '<V>'", "wget --password=<V> https://lindwerk.de/x",
]  # fmt: skip
PASSWORDS = [
    "SET PASSWORD FOR 'ada'@'%' = '<V>';", '<setting name="MailPassword"><value><V></value></setting>', "rootpw <V>",
    'psk="<V>"', "CREATE USER ada IDENTIFIED BY '<V>';", "ALTER USER ada WITH PASSWORD '<V>';",
    "CREATE ROLE a LOGIN PASSWORD '<V>';",
    "SET PASSWORD FOR ada = '<V>';", "SET PASSWORD FOR 'ada'@'h' = PASSWORD('<V>');", "requirepass <V>",
    "machine h login ada password <V>", "The password is <V>.", "the password for the staging box is <V>",
    "My password: <V>", "password was changed to <V> yesterday", "Use password `<V>` for now.",
    "user: ada / password: <V>", "login ada pw: <V>", "ID: ada PW: <V>", "das Passwort ist <V>",
    "Das Passwort lautet: <V>",
    "Kennwort: <V>", "Das Kennwort für den Server ist <V>", "le mot de passe est <V>", "Mot de passe : <V>",
    "le mot de passe du serveur est <V>", "la contraseña es <V>", "Contraseña: <V>", "a senha é <V>", "Senha: <V>",
    "het wachtwoord is <V>", "Wachtwoord: <V>", "hasło to <V>", "Hasło: <V>", "пароль: <V>", "Пароль это <V>",
    "パスワードは<V>です".replace("です", " です"), "パスワード：<V>",
    "密码是 <V>", "密码：<V>", "密碼: <V>", "la parola d'ordine è <V>",
]  # fmt: skip
TOKENS = [
    "the token is <V>", "my api key is <V>", "API key: <V>", "access token = <V>", "Authorization: Bearer <V>",
    "authorization: token <V>", "Authorization: <V>", "Cookie: sessionid=<V>; a=b", "https://<V>@git.lindwerk.de/x.git",
    "wss://h.lindwerk.de/?access_token=<V>", '"Authorization": "Bearer <V>"', "-H 'X-Auth-Token: <V>'",
]  # fmt: skip

_PASSWORD_NAMES = ["db password", "admin passwd", "smtp password", "root pwd", "user pass", "login pw", "password"]
_TOKEN_NAMES = ["api key", "github token", "client secret", "auth token", "stripe secret key", "access token", "my pat"]
_BASE62 = string.ascii_letters + string.digits
_WORDS = "harbour tangerine kestrel meadow saturn velvet copper falcon orchid thunder winter maple anchor".split()


class Planted(NamedTuple):
    """A value in a carrier."""

    family: str
    text: str
    value: str


def random_token(chance: random.Random) -> str:
    """Make a token as programs do: base62, hex or base64url, of 20 to 48 characters."""
    alphabet = chance.choice(
        [string.ascii_letters + string.digits, "0123456789abcdef", string.ascii_letters + string.digits + "-_"]
    )
    while True:
        token = "".join(chance.choices(alphabet, k=chance.choice([24, 32, 40, 48])))
        if token[0].isalnum() and token[-1].isalnum() and any(map(str.isdigit, token)) and any(map(str.isalpha, token)):
            return token


def human_password(chance: random.Random) -> str:
    """Make a password as people do: a word with other letters, digits and a symbol."""
    word = chance.choice(_WORDS).title()
    word = word.replace("e", chance.choice("e3")).replace("o", chance.choice("o0")).replace("a", chance.choice("a4@"))
    digits = chance.choice([str(chance.randrange(10, 10_000)), "1234", "2026", "12345678"])
    symbol = chance.choice("!#%*+?-_.")
    return chance.choice([f"{word}{symbol}{digits}x", f"{word}{digits}{symbol}", f"{symbol}{digits}{word}q"]).lstrip(
        "-#%?*.!"
    )


def carriers(is_password: bool) -> Iterator[tuple[str, str]]:
    """Yield the families and templates for a kind of value."""
    for family, templates in NAMED.items():
        yield from ((family, template) for template in templates)
    yield from (("command", template) for template in COMMANDS)
    yield from (("sentence", template) for template in (PASSWORDS if is_password else TOKENS))


def plant(chance: random.Random, family: str, template: str, is_password: bool, name: str = "") -> Planted:
    """Put a value into a carrier, under a name of its kind or the given one."""
    value = human_password(chance) if is_password else random_token(chance)
    if family == "credentials" and "@db" in template:
        value = value.replace("@", "4").replace("#", "_").replace("?", "_").replace("%", "_")
    words = (name or chance.choice(_PASSWORD_NAMES if is_password else _TOKEN_NAMES)).split()
    camel = words[0] + "".join(map(str.title, words[1:]))
    names = {"<U>": "_".join(words).upper(), "<s>": "_".join(words), "<c>": camel, "<k>": "-".join(words)}
    text = template
    for mark, name in (*names.items(), ("<P>", camel[:1].upper() + camel[1:]), ("<V>", value)):
        text = text.replace(mark, name)
    return Planted(family, text, value)


def _numbers(chance: random.Random) -> str:
    return "\n".join(f"{chance.randrange(10**12, 10**13)} {chance.random():.9f}" for _ in range(300))


def _addresses(chance: random.Random) -> str:
    return "\n".join(
        f"Author: {chance.choice(_WORDS)} <noreply@{chance.choice(_WORDS)}.example.com>" for _ in range(200)
    )


def _paths(chance: random.Random) -> str:
    return "\n".join(f"src/{chance.choice(_WORDS)}/{chance.choice(_WORDS)}_{n}.py:{n}: ok" for n in range(300))


def _code(chance: random.Random) -> str:
    return "\n".join(f"    if token == {chance.choice(_WORDS)}.token: return password[{n}:]" for n in range(100))


NOISE: dict[str, Callable[[random.Random], str]] = {
    "none": lambda chance: chance.choice(["", "see:", "$"]),
    "numbers": _numbers,
    "addresses": _addresses,
    "paths": _paths,
    "code": _code,
}
"""What may be before a carrier."""
ENCODINGS: dict[str, Callable[[str], str]] = {
    "plain": str,
    "json": lambda text: json.dumps({"output": text}),
    "json in json": lambda text: json.dumps({"result": json.dumps({"stdout": text})}),
    "json escaped": lambda text: json.dumps({"output": text}, ensure_ascii=True),
    "percent": lambda text: urllib.parse.quote(text, safe=""),
    "base64": lambda text: base64.b64encode(text.encode()).decode(),
}
"""How a text may be encoded."""
