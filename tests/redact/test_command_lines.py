"""Passwords that are given to programs: as arguments, through a pipe, and to Vault."""

from __future__ import annotations

import json

import pytest

from clew.redact import Marker, redact, scan
from clew.redact.redactor import MaskSettings, Redactor

VALUE = "tangerine42"
SECRET_ID = "84896a0c-1347-aa90-" + "a4f6-aca8b7558780"


@pytest.mark.parametrize("value", [VALUE, "Harbour!x", "s3cr/t@9", "plainwordpass"])
@pytest.mark.parametrize(
    "form",
    [
        "docker login -p {}",
        "docker login -u ada -p {} registry.lindwerk.de",
        "docker login registry.lindwerk.de -u ada -p '{}'",
        'podman login --username=ada -p "{}" quay.lindwerk.de',
        "docker login -u ada \\\n  -p {}",
        "docker login -u ada --password {} r.io",
        "docker login -u ada --password={} r.io",
        "docker login -u ada -p={}",
        "helm registry login r.io -u ada -p {}",
        "az acr login -n shop -u ada -p {}",
        "htpasswd -b f ada {}",
        "htpasswd -bc .htpasswd ada {}",
        "htpasswd -nb ada {}",
        "htpasswd -nbB -C 10 ada '{}'",
        "echo {} | sudo -S apt update",
        "echo '{}' | sudo -S ls",
        'echo "{}"|sudo -kS ls',
        "echo -n {} | sudo -E -S ls",
        "printf '%s\\n' '{}' | sudo -S ls",
        "sudo -S ls <<< '{}'",
        "sudo -S <<<{} ls",
        "echo {} | docker login -u ada --password-stdin r.io",
        "echo {} | passwd --stdin ada",
    ],
)
def test_a_password_given_to_a_program_is_masked(form: str, value: str) -> None:
    for text in (form.format(value), f"$ {form.format(value)}\nok\n", f"run `{form.format(value)}` then"):
        masked = redact(text)
        assert value not in masked, text
        assert masked.count("[REDACTED]") == 1
        assert masked.split("[REDACTED]")[0] == text.split(value)[0]
        line = json.dumps({"command": text})
        assert value not in Redactor(MaskSettings("secrets", Marker())).text(line)


@pytest.mark.parametrize("value", ["two words", "correct horse", "my secret words 7", "blue harbour 7"])
@pytest.mark.parametrize(
    "form",
    ["gpg --passphrase '{}' -d x", 'gpg --passphrase "{}"', "gpg --passphrase='{}' -d x", "x --password '{}'"],
)
def test_a_phrase_in_quotes_behind_a_flag_is_masked(form: str, value: str) -> None:
    assert redact(form.format(value)) == form.format("[REDACTED]")


@pytest.mark.parametrize(
    "text",
    [
        f"secret_id={SECRET_ID}",
        f"vault write auth/approle/login role_id=shop secret_id={SECRET_ID}",
        f"secret_id             {SECRET_ID}\nsecret_id_accessor    x",
        f'"secret_id": "{SECRET_ID}"',
        f"VAULT_SECRET_ID={SECRET_ID}",
        f"-secret-id={SECRET_ID}",
    ],
)
def test_the_secret_id_of_vault_is_masked(text: str) -> None:
    assert redact(text) == text.replace(SECRET_ID, "[REDACTED]")


def test_the_secret_id_of_vault_is_masked_as_a_member() -> None:
    for key in ("secret_id", "secretId", "secret-id"):
        record = {"data": {key: SECRET_ID, "secret_id_accessor": SECRET_ID[::-1]}, "id": SECRET_ID[::-1]}
        masked = Redactor(MaskSettings("secrets", Marker())).learn_and_mask(record)
        assert masked["data"][key] == "[REDACTED]"
        assert masked["id"] == record["id"]


@pytest.mark.parametrize(
    "text",
    [
        "docker login -p $TOKEN r.io",
        'docker login -u ada -p "$(cat t)" r.io',
        "docker login -u ada -p <password>",
        "docker run -p 8080:80 login -p 8080:80",
        "the docker login page -pretty",
        "htpasswd -b f ada $PASS",
        "htpasswd -c f ada",
        "echo $PASS | sudo -S ls",
        'echo "${PASS}" | sudo -S ls',
        "echo done | sudo tee /etc/x",
        "echo 'deb x' | sudo tee -a /etc/S",
        "cat x | sudo -S ls",
        "gpg --passphrase '$PASS' -d x",
        "gpg --passphrase 'your passphrase here'",
        "gpg --passphrase-file x",
        'aws secretsmanager get-secret-value --secret-id "prod/shop/db"',
        "secret_id: prod/shop",
        "ssh login -p 2222",
    ],
)
def test_what_is_no_password_stays(text: str) -> None:
    assert scan(text) == []
