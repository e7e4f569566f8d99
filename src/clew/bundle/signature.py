"""Signatures with ssh keys, made and checked by `ssh-keygen -Y`."""

from __future__ import annotations

import base64
import re
import subprocess
import tempfile
from pathlib import Path
from typing import NamedTuple

from clew.errors import SourceUnreadable

NAMESPACE = "clew-bundle"
"""A signature is valid for this use of a key alone."""
MAX_SIGNATURE_BYTES = 64 << 10
_BEGIN, _END = b"-----BEGIN SSH SIGNATURE-----\n", b"-----END SSH SIGNATURE-----\n"
_LINE_LENGTH = 70
_WITHOUT_REASON = ("No principal matched.", "Could not verify signature.")
"""What ssh-keygen prints besides its reasons, if it has any, why lines of a list of signers do not count."""
_KEY = re.compile(r"with (\S+ key \S+)")


class ToolMissing(SourceUnreadable):
    """ssh-keygen is not installed."""


class Checked(NamedTuple):
    """The result of checking a signature."""

    problem: str | None
    key: str | None = None
    """Type and fingerprint of the key; None for a signature that is not valid."""
    signer: str | None = None
    """Who it is, according to the list of signers."""


class _Answer(NamedTuple):
    is_good: bool
    text: str


def sign(content: bytes, key: Path) -> bytes:
    """Return the signature of a content. ssh-keygen asks for the passphrase of the key at the terminal."""
    done = _run("sign", "-f", str(key), "-n", NAMESPACE, content=content)
    if not done.is_good:
        raise SourceUnreadable(f"{key}: cannot be used to sign: {done.text.strip() or 'ssh-keygen failed'}")
    return done.text.encode()


def check(content: bytes, signature: bytes, signers: Path | None) -> Checked:
    """Check a signature; with a file of allowed signers, also whose it is."""
    if not _is_canonical(signature):
        return Checked("is not a signature as ssh-keygen writes it")
    with tempfile.TemporaryDirectory(prefix="clew-") as folder:
        file = Path(folder) / "signature"
        file.write_bytes(signature)
        done = _run("check-novalidate", "-n", NAMESPACE, "-s", str(file), content=content)
        if not done.is_good:
            return Checked(f"is not a valid signature of the manifest: {done.text.strip()}")
        key = found[1] if (found := _KEY.search(done.text)) else "an unknown key"
        if signers is None:
            return Checked(None, key)
        found_signers = _run("find-principals", "-s", str(file), "-f", str(signers), content=b"")
        refusals = [] if found_signers.is_good else [found_signers.text]
        for signer in found_signers.text.splitlines() if found_signers.is_good else ():
            wanted = ("-f", str(signers), "-I", signer, "-n", NAMESPACE, "-s", str(file))
            verified = _run("verify", *wanted, content=content)
            if verified.is_good:
                return Checked(None, key, signer)
            refusals.append(verified.text)
    reasons = dict.fromkeys(line for text in refusals for line in text.splitlines() if line not in _WITHOUT_REASON)
    why = f" ({'; '.join(reasons)})" if reasons else ""
    return Checked(f"signed with {key}; no line of {signers} allows this key to sign bundles{why}", key)


def _is_canonical(signature: bytes) -> bool:
    """Return True for text that ssh-keygen would write so: a changed byte must not go unnoticed."""
    if not (signature.startswith(_BEGIN) and signature.endswith(_END)):
        return False
    try:
        text = base64.b64encode(
            base64.b64decode(signature[len(_BEGIN) : -len(_END)].replace(b"\n", b""), validate=True)
        )
    except ValueError:
        return False
    lines = [text[at : at + _LINE_LENGTH] + b"\n" for at in range(0, len(text), _LINE_LENGTH)]
    return signature == _BEGIN + b"".join(lines) + _END


def _run(action: str, *options: str, content: bytes) -> _Answer:
    try:
        done = subprocess.run(["ssh-keygen", "-Y", action, *options], input=content, capture_output=True, check=False)
    except FileNotFoundError:
        raise ToolMissing("ssh-keygen is not installed; it makes and checks signatures") from None
    is_good = done.returncode == 0
    return _Answer(is_good, (done.stdout if is_good else done.stderr or done.stdout).decode("utf-8", "replace"))
