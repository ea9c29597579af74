"""Sigstore beside the key: bundles in its library's own format, made here; no server is asked."""

from __future__ import annotations

import base64
import datetime
import json
import sys
from types import SimpleNamespace

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from doctored import plain, put, require_found, signed, written
from made_up_audits import checked

from nonmember.evidence import signing as sigstored
from nonmember_verify.archive import ENVELOPE
from nonmember_verify.certificates import ISSUER, SIGSTORE, certified
from nonmember_verify.envelope import PAYLOAD_TYPE, pre_authentication

WHO, KNOWN_BY = "auditor@example.org", "https://accounts.example.org"


def certificate(public, since=None) -> x509.Certificate:
    """As Fulcio issues it, by an authority that nobody trusts: no subject, an e-mail address, ten minutes."""
    since = since or datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC)
    authority = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "made up")])
    issuer = b"\x0c" + bytes([len(KNOWN_BY)]) + KNOWN_BY.encode()
    extensions = [
        (x509.SubjectAlternativeName([x509.RFC822Name(WHO)]), True),
        (x509.UnrecognizedExtension(x509.ObjectIdentifier(ISSUER), issuer), False),
        (x509.KeyUsage(True, *[False] * 8), True),
        (x509.AuthorityKeyIdentifier(b"x" * 20, None, None), False),
        (x509.ExtendedKeyUsage([x509.ExtendedKeyUsageOID.CODE_SIGNING]), False),
    ]
    builder = (
        x509.CertificateBuilder()
        .subject_name(x509.Name([]))
        .issuer_name(authority)
        .public_key(public)
        .serial_number(7)
        .not_valid_before(since)
        .not_valid_after(since + datetime.timedelta(minutes=10))
    )
    for item, critical in extensions:
        builder = builder.add_extension(item, critical)
    return builder.sign(ec.generate_private_key(ec.SECP256R1()), hashes.SHA256())


def log_entry() -> dict:
    """Of a transparency log, in form."""
    encoded = base64.b64encode(b"x" * 32).decode()
    return {
        "logIndex": "1",
        "logId": {"keyId": encoded},
        "kindVersion": {"kind": "dsse", "version": "0.0.1"},
        "integratedTime": "1767225600",
        "inclusionPromise": {"signedEntryTimestamp": encoded},
        "inclusionProof": {
            "logIndex": "1",
            "rootHash": encoded,
            "treeSize": "2",
            "hashes": [encoded],
            "checkpoint": {"envelope": "x"},
        },
        "canonicalizedBody": base64.b64encode(b"{}").decode(),
    }


def countersigned(payload: bytes, key=None, change=lambda bundle: None) -> bytes:
    key = key or ec.generate_private_key(ec.SECP256R1())
    der = certificate(key.public_key()).public_bytes(serialization.Encoding.DER)
    signature = key.sign(pre_authentication(payload), ec.ECDSA(hashes.SHA256()))
    bundle = {
        "mediaType": "application/vnd.dev.sigstore.bundle.v0.3+json",
        "verificationMaterial": {
            "certificate": {"rawBytes": base64.b64encode(der).decode()},
            "tlogEntries": [log_entry()],
        },
        "dsseEnvelope": {
            "payload": base64.b64encode(payload).decode(),
            "payloadType": PAYLOAD_TYPE,
            "signatures": [{"sig": base64.b64encode(signature).decode()}],
        },
    }
    change(bundle)
    return json.dumps(bundle).encode()


def statement() -> bytes:
    return base64.b64decode(json.loads(plain("prism")[ENVELOPE])["payload"])


def line(path, what, **given):
    return next(item for item in checked(path, **given).lines if item.what == what)


def test_what_four_libraries_can_check_and_what_they_cannot(tmp_path):
    path = written({**plain("prism"), SIGSTORE: countersigned(statement())}, tmp_path / "bundle.zip")
    assert not checked(path).failures
    told = line(path, "sigstore").told
    assert f"names {WHO}, by {KNOWN_BY}, and was valid from 2026-01-01T00:00:00Z to 2026-01-01T00:10:00Z" in told
    for given in ({}, {"identity": WHO}):  # alone, the verifier cannot confirm
        left = line(path, "certificate", **given)
        assert left.kind == "not checked"
        for part in ("chain", "transparency log", f"{WHO} is who you mean", "nonmember[sigstore]"):
            assert part in left.told


LIES = {
    "another statement": (lambda: countersigned(statement() + b" "), "another statement was signed with Sigstore"),
    "a signature of another key": (
        lambda: countersigned(
            statement(), change=put("dsseEnvelope", "signatures", 0, "sig", base64.b64encode(b"0" * 70).decode())
        ),
        "signed by another key than its certificate has",
    ),
    "a certificate of somebody else": (
        lambda: countersigned(
            statement(), change=put("verificationMaterial", json.loads(countersigned(b"{}"))["verificationMaterial"])
        ),
        "signed by another key than its certificate has",
    ),
    "no certificate": (
        lambda: countersigned(statement(), change=lambda item: item["verificationMaterial"].pop("certificate")),
        "is not a Sigstore bundle with a certificate",
    ),
    "another type": (
        lambda: countersigned(statement(), change=put("mediaType", "text/plain")),
        "is not a Sigstore bundle",
    ),
    "another payload": (
        lambda: countersigned(statement(), change=put("dsseEnvelope", "payloadType", "text/plain")),
        "must hold an in-toto statement",
    ),
}


@pytest.mark.parametrize("name", LIES)
def test_a_lie_is_found(name, tmp_path):
    lie, sentence = LIES[name]
    require_found(written({**plain("prism"), SIGSTORE: lie()}, tmp_path / "bundle.zip"), sentence)


def test_nothing_signed_is_not_signed_by_somebody(tmp_path):
    require_found(written(plain("prism"), tmp_path / "bundle.zip"), "nothing in the bundle was signed", identity=WHO)
    old = {**plain("prism"), SIGSTORE: countersigned(statement())}
    require_found(written(signed(old, machine={}), tmp_path / "bundle.zip"), "another statement was signed")


def test_what_the_library_says_is_the_answer(tmp_path):
    path = written({**plain("prism"), SIGSTORE: countersigned(statement())}, tmp_path / "bundle.zip")
    asked = []

    def confirm(content, identity, issuer):
        asked.append((identity, issuer))

    told = line(path, "certificate", identity=WHO, issuer=KNOWN_BY, confirm=confirm)
    assert (told.kind, asked) == ("ok", [(WHO, KNOWN_BY)])
    assert line(path, "issuer", identity=WHO, confirm=confirm).kind == "not checked"
    refuse = lambda *_: "no such identity"  # noqa: E731
    assert line(path, "certificate", identity=WHO, confirm=refuse).kind == "FAILED"

    def unreachable(*_):
        raise OSError("no network")

    assert line(path, "certificate", identity=WHO, confirm=unreachable).kind == "not checked"


def test_the_library_reads_it_and_refuses_an_authority_that_nobody_trusts(tmp_path, monkeypatch):
    pytest.importorskip("sigstore", reason="needs sigstore: pip install nonmember[sigstore]")
    from sigstore.models import Bundle
    from sigstore.verify import Verifier

    for name in ("HOME", "XDG_CACHE_HOME", "XDG_DATA_HOME"):
        monkeypatch.setenv(name, str(tmp_path))
    content = countersigned(statement())
    assert Bundle.from_json(content).signing_certificate.serial_number == 7
    verifier = Verifier.production(offline=True)  # by the roots that the library brings
    assert "ertificate" in sigstored.confirm(content, WHO, KNOWN_BY, verifier), "its chain ends nowhere"
    assert "bundle" in sigstored.confirm(b"{}", WHO, None, verifier)


def test_signing_goes_the_librarys_own_way(monkeypatch):
    """Its signer and its envelope, with servers that are played: an authority, and a log."""
    pytest.importorskip("sigstore", reason="needs sigstore: pip install nonmember[sigstore]")
    import sigstore.sign
    from sigstore.models import TransparencyLogEntry
    from sigstore_models.rekor.v1 import TransparencyLogEntry as Entry

    now = datetime.datetime.now(datetime.UTC).replace(microsecond=0)
    authority = SimpleNamespace(
        post=lambda request, token: SimpleNamespace(cert=certificate(request.public_key(), now), chain=[])
    )
    log = SimpleNamespace(
        _build_dsse_request=lambda envelope, certificate: None,
        create_entry=lambda request: TransparencyLogEntry(Entry.from_json(json.dumps(log_entry()))),
    )
    monkeypatch.setattr(sigstore.sign, "verify_sct", lambda *_: None)
    context = sigstore.sign.SigningContext(
        fulcio=SimpleNamespace(signing_cert=authority),
        rekor=log,
        trusted_root=SimpleNamespace(ct_keyring=lambda _: None),
    )
    content = sigstored.sign(statement(), context, SimpleNamespace(in_validity_period=lambda: True))
    assert certified(content)[:3] == (statement(), WHO, KNOWN_BY)


def test_without_the_library_one_sentence_says_so(monkeypatch):
    monkeypatch.setitem(sys.modules, "sigstore", None)
    with pytest.raises(ValueError, match=r'own library, which is missing .*pip install "nonmember\[sigstore\]"'):
        sigstored.signed_online(b"{}")
    with pytest.raises(OSError, match="own library, which is missing"):
        sigstored.confirm(b"{}", WHO, None)
