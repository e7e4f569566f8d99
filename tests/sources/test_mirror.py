"""Which files of another machine are copied."""

from __future__ import annotations

from pathlib import Path

from clew.sources.mirror import Listed, Mirror

KEYS = """token.json client_secret_1.json service-account.json .netrc .npmrc credentials secrets.env AUTH.JSON auth.json
.env .env.local google_accounts.json oauth_creds.json id_rsa id_work server.pem auth.toml""".split()


def test_credential_files_are_not_copied(tmp_path: Path) -> None:
    wanted = ["session.jsonl", ".env.example", "id_rsa.pub"]
    listing = [Listed(f"/home/ada/.agent/{name}", 10, 1) for name in (*KEYS, *wanted)]
    allowed, problems = Mirror(tmp_path, "box").filter_allowed(listing, ["/home/ada/.agent"])
    assert [Path(file.path).name for file in allowed] == wanted
    assert problems == []
