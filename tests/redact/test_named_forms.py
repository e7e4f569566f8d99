"""Values with a name, in manifests, markup, statements of SQL, tables and shells."""

from __future__ import annotations

import json
from functools import partial
from io import BytesIO

import pytest

from clew.redact import Marker, redact
from clew.redact.native_files import mask_file
from clew.redact.redactor import MaskSettings, Redactor
from tests.redact.planted import Planter

PLANT = Planter("named forms")
VALUE = PLANT.chars(7) + "-" + PLANT.chars(8)
QUOTED = [
    'ab \\"cd',
    f'{VALUE}\\"{VALUE}',
    f'{VALUE} \\"x\\" {VALUE}',
    f"{VALUE}\\\\",
]


def both(text: str) -> list[str]:
    """A text masked by itself, and as it comes back out of a line of JSON."""
    line = json.dumps({"type": "user", "message": {"role": "user", "content": text}}).encode() + b"\n"
    masked = b"".join(mask_file(partial(BytesIO, line), Redactor(MaskSettings("secrets", Marker()))))
    return [redact(text), json.loads(masked)["message"]["content"]]


@pytest.mark.parametrize("name", ["DB_PASSWORD", "GITHUB_TOKEN", "API_KEY"])
@pytest.mark.parametrize(
    "form",
    [
        "env:\n  - name: {}\n    value: {}\n  - name: PORT\n",
        "env:\n  - name: {}\n    value: '{}'\n",
        "- name: '{}'\r\n  value: \"{}\"\r\n",
        '<add name="{}" value="{}" />',
        '<add key="{}"\n     value="{}"/>',
        "<env name='{}' value='{}'/>",
        '{{"name":"{}","value":"{}"}} trailing text',
        "[{{'name': '{}', 'value': '{}'}}] trailing text",
        "<property><name>{}</name>\n<value>{}</value></property>",
        "{}=&quot;{}&quot;",
        "&lt;a {}=&#34;{}&#34;&gt;",
        "{}&#61;{}",
        "{}&#x3d;&#x27;{}&#x27;",
        "| {} | {} |",
        "|{}|{}|\n",
        '"{}","{}"',
        "['{}', '{}']",
        "{} ?= {}",
        "{}+={}",
        "export {}=$'{}'",
        'export {}=$"{}"',
    ],
)
def test_named_values_are_masked(name: str, form: str) -> None:
    text = form.format(name, VALUE)
    assert both(text) == [text.replace(VALUE, "[REDACTED]")] * 2


@pytest.mark.parametrize(
    "form",
    [
        "CREATE USER 'app'@'%' IDENTIFIED BY '{}';",
        'create user app identified by "{}"',
        "ALTER USER app IDENTIFIED WITH mysql_native_password BY '{}'",
        "GRANT ALL ON a.* TO b IDENTIFIED BY PASSWORD '{}'",
        "CREATE USER app IDENTIFIED BY {};",
    ],
)
def test_passwords_in_statements_of_sql_are_masked(form: str) -> None:
    text = form.format(VALUE)
    assert both(text) == [text.replace(VALUE, "[REDACTED]")] * 2
    if "'{}'" in form:
        assert both(form.format("tangerine")) == [form.format("[REDACTED]")] * 2


@pytest.mark.parametrize("value", QUOTED)
@pytest.mark.parametrize("form", ['DB_PASSWORD="{}"\n', '"password": "{}", "port": 80', 'password = "{}" # "x"'])
def test_an_escaped_quote_does_not_end_a_value(value: str, form: str) -> None:
    for text in (form.format(value), json.dumps(form.format(value))[1:-1] + " x"):
        for masked in both(text):
            assert value.strip("\\") not in masked
            assert "[REDACTED]" in masked
            assert VALUE not in masked and "cd" not in masked
            assert masked.endswith(text[-2:])


def test_a_backslash_at_the_end_of_a_value_in_single_quotes_is_no_escape() -> None:
    for masked in both(f"DB_PASSWORD='{VALUE}\\' OTHER='x y'"):
        assert VALUE not in masked


@pytest.mark.parametrize(
    "text",
    [
        "- name: DB_PASSWORD\n  valueFrom:\n    secretKeyRef:\n      name: db\n      key: password\n",
        "- name: DB_PASSWORD\n  value: ${DB_PASSWORD}\n",
        "- name: TOKEN_LIMIT\n  value: 4096abcd\n",
        '<input name="password" value="" type="password">',
        '<input name="password" value="{{ password }}">',
        "IDENTIFIED BY '<password>'",
        "was identified by the author",
        "IDENTIFIED BY ?",
        "| password | string | required |",
        "| API_KEY | your-api-key | required |",
        "| TOKEN | the token of the service | yes |",
        'echo "$PASSWORD" | sha256sum | cut -c1-8',
        "cat token | base64 -d | xxd",
        "type Kind = | password | oauth2 | saml2 |",
        '["DB_PASSWORD", "DB_HOST", "DB_USER"]',
        "['username', 'password', 'sha256', 'oauth2']",
        'fields = ("password", "created_at")',
        '"password","email","created_at"',
        'if (password ?? "x") {',
        "password ?= os.environ",
        "tokens += len(words)",
        "token += next_char()",
        'message = "the \\"password\\" field is required"',
        '"password": "say \\"please\\" to the user"',
        "&lt;input type=&quot;password&quot; name=&quot;password&quot;&gt;",
        "password=&quot;&quot;",
        "token&#61;None",
        "Tom&#39;s password&#58; &lt;secret&gt;",
    ],
)
def test_names_without_a_value_stay(text: str) -> None:
    assert both(text) == [text, text]


def test_an_escaped_quote_does_not_end_a_value_of_an_env_file() -> None:
    text = f'PORT=8080\nPIN="open \\"{VALUE}\\" now"\nOTHER="{VALUE}\\"\n'
    clean = redact(text, path=".env")
    assert VALUE not in clean and "now" not in clean
    assert clean.startswith("PORT=8080\nPIN=")


@pytest.mark.parametrize(
    "form",
    [
        "api_token = ' {} '",
        "api_token - '{}'",
        "the acme key is {}, as before",
        "acme key - '{}'",
        'static final String ACCOUNT_KEY\n    = "{}";',
        'const key = process.env.ACCOUNT_KEY ||\n  "{}"',
        "assert.equal(parsed['AccountKey'], '{}');",
        'setopt(handle, OPT_PASSWORD, "{}");',
        'func getAcmeToken() string {{ return "{}" }}',
        'def acme_token(self):\n    return "{}"\n',
        "X3_PSWD={}",
        "PSWORD:={}",
        "MYSQLPASS: {}",
        "azurestorageaccountkey: {}",
        "?tokenkey={}&page=2",
        "| the refresh token | {} |",
        'ConvertTo-SecureString "{}" -AsPlainText -Force',
        "ConvertTo-SecureString -String '{}' -AsPlainText",
    ],
)
def test_further_connections_of_names_and_values(form: str) -> None:
    value = "7" + PLANT.chars(31)
    assert both(form.format(value)) == [form.format("[REDACTED]")] * 2


KEY_BYTES = [*PLANT.chars(24).encode(), 7, 200, 9, 251]


@pytest.mark.parametrize(
    "form",
    [
        "const uint8_t key[16] = {{ {} }};",
        "#define AES_KEY {{{}}}",
        "Secret: []byte{{{}}},",
        "secretKey = bytes([{}])",
        "byte[] privateKey = new byte[] {{ {} }};",
    ],
)
@pytest.mark.parametrize("number", ["{}", "0x{:02x}"])
def test_keys_written_as_numbers_are_masked(form: str, number: str) -> None:
    numbers = ", ".join(map(number.format, KEY_BYTES))
    assert both(form.format(numbers)) == [form.format("[REDACTED]")] * 2


@pytest.mark.parametrize(
    "text",
    [
        f"tokens = [{', '.join(map(str, KEY_BYTES))}]",
        f"key = [{', '.join(map(str, range(32)))}]",
        f"password_lengths = [{', '.join(map(str, KEY_BYTES))}]",
        "secret = (1, 2, 3)",
        "the primary key is " + "0123456789abcdef" * 2,
        '"minipass": "^7.0.3"',
        "cat token | sha256sum | cut -c1-8",
        "#define SSL_UNKNOWN_PSK_ERROR  TLS1_AD_UNKNOWN_PSK_ERROR",
        "#define OBJ_userPassword   OBJ_X509",
        "#define DEPTH_PASS   0x0B96",
        '#define LN_kx_psk  "kx-ecdhe-psk"',
        "#password_encryption = scram-sha-256",
        '"auth":  b64encoded,',
        "Secret:   *s3ScanSecret,",
        '"or_api_keys": OrApiKeys,',
        'authRequest.Header.Set("Accept", "application/json9")',
        'name="regex" protobuf_key:"bytes,1,opt,name=key,proto3"',
        "connect(host, user, password, port)\nconnect(s.Host, s.User, s.Password, 8)\n",
        "`amqps?://[\\S]{3,50}:([\\S]{3,50})@host`",
        "your password will be echoed to the terminal!",
        '<entry code="RU-PSK"\tname="Pskovskaja"/>',
        "pass => $self->pass,",
    ],
)
def test_other_numbers_and_keys_stay(text: str) -> None:
    assert both(text) == [text, text]


def test_a_value_beyond_the_limit_is_masked_to_its_end() -> None:
    value = PLANT.chars(10_000)
    assert both(f"API_TOKEN={value} end") == ["API_TOKEN=[REDACTED] end"] * 2


def test_a_path_in_a_list_names_no_secret() -> None:
    paths = '"/static//etc/passwd", "/static/%2fetc%2fpasswd", "/static/....//app.py9", "/static/C:%5cx"'
    assert redact(paths) == paths


PASSWORD = PLANT.chars(4) + "!" + PLANT.chars(5) + "7"
KEY = "".join(PLANT.chars(12, alphabet) for alphabet in ("aBcDeFgH7/", "kLmN5pQr+", "StUvWxYz3"))
MORE_FORMS = [
    "**Password:** {}",
    "__Password:__ {}",
    "**API key:** `{}`",
    "pass" + "word: !vault {}",
    "pass" + "word: !!str {}",
    "pass" + "word: &anchor {}",
    "<ns:password>{}</ns:password>",
    '<wsse:Password Type="text">{}</wsse:Password>',
    "&lt;password&gt;{}&lt;/password&gt;",
    "Password:\n```\n{}\n```",
    "password：{}",
    'password = r"""{}"""',
    'let password = r#"{}"#;',
    "SET @password = N'{}'",
    'add_argument("--password", default="{}")',
    'password: str = Field(default="{}")',
    '{{"password":{{"value":"{}"}}}}',
    's:8:"password";s:11:"{}"',
    '{{"value":"{}","type":"x","name":"API_KEY"}}',
    '{{"ParameterKey":"DBPassword","ParameterValue":"{}"}}',
    'docker login --password-stdin <<< "{}"',
    "echo {} | gh secret set X",
    "echo {} | kinit bob",
    "twine upload -u x -p {}",
    "ssh-keygen -N {} -f k",
    "cargo login {}",
    "oc login -u a -p {}",
    "PresharedKey = {}",
    "password: >-\n  {}",
]


@pytest.mark.parametrize("form", MORE_FORMS)
@pytest.mark.parametrize("value", [PASSWORD, KEY], ids=["password", "key"])
def test_more_forms_of_named_values_are_masked(form: str, value: str) -> None:
    if value == PASSWORD and "Preshared" in form:
        pytest.skip("a preshared key is random")
    for masked in both(form.format(value)):
        assert value not in masked and masked.replace("[REDACTED]", "{}") == form.format("{}")


@pytest.mark.parametrize("form", ["spring.datasource.password={}", "password: {}", "user=bob&password={}"])
def test_random_letters_are_a_password(form: str) -> None:
    letters = "RROMyUdg" + "ogRsfJtiTzkPtMiR"
    assert both(form.format(letters)) == [form.format("[REDACTED]")] * 2


@pytest.mark.parametrize("form", ["DB_PASSWORD={}", "password={}", "password: {}", 'password = "{}"'])
@pytest.mark.parametrize(
    "parts",
    [
        ("dcUFN+TB", "dGVq9x"),  # contains `tbd`
        ("VMcf", "Ake3jVOE2n"),  # contains `fake`
        ("q?.ock", "5Jw#9"),
        ("u3vs/sr5Zk", "WQarx+Rf++"),
        ("/sGJ/Tg", "94RkW"),
        ("hL3ceSv&", "YC.*A"),
        ("$mTN8wQ3", "ajpVFp"),
        ("FY0!fD#Ox", ".eRXZk"),
    ],
)
def test_small_letters_capitals_and_digits_are_a_password_with_any_symbols(form: str, parts: tuple[str, str]) -> None:
    """Also where a part of it could be code, a path or a word such as `fake`."""
    assert both(form.format("".join(parts))) == [form.format("[REDACTED]")] * 2


@pytest.mark.parametrize(
    "text",
    [
        "password = first + second",
        "password = config?.db.password1",
        "password=$DbPass2",
        "password: OAuth2Token.value",
        "password = req.body.newPassword2",
        "password=/run/secrets/dbPass2",
        "password=TBD",
        "password=changeMe1",
        "password=Your_Password1",
        "password=FAKE_Pass1",
        'gh pr create --body-file - <<< "Fixes 42 typos!"',
        "password: !Ref DBPassword",
        "password = getUserPasswordFromConfig",
        "password: !GetAtt Db.Password",
    ],
)
def test_references_to_passwords_stay(text: str) -> None:
    assert both(text) == [text, text]
