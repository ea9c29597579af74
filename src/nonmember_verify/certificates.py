"""A Sigstore bundle beside the statement: what can be checked of it without Sigstore's own library.

That is: the same statement was signed by the key in the certificate. Who issued the certificate, whether the
transparency log has the signature and since when, needs that library and its roots of trust.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable, Mapping
from typing import Any

from nonmember_verify.archive import ENVELOPE
from nonmember_verify.envelope import PAYLOAD_TYPE, pre_authentication, strict_json
from nonmember_verify.report import Report

SIGSTORE = "statement.sigstore.json"
MEDIA_TYPE = "application/vnd.dev.sigstore.bundle"  # what the type of all versions begins with
ISSUER = "1.3.6.1.4.1.57264.1.8"  # of Fulcio's certificates: who had checked the identity
HOW = 'the whole package with Sigstore\'s library (pip install "nonmember[sigstore]") and --identity'


# Sigstore bundle, identity, issuer -> None, or why it does not hold. Raises OSError where it could not be looked at.
Confirm = Callable[[bytes, str, str | None], str | None]


def check_certificate(
    files: Mapping[str, bytes], identity: str | None, issuer: str | None, confirm: Confirm | None, report: Report
) -> None:
    """identity, issuer: who should have signed.   confirm: asks Sigstore's library."""
    if SIGSTORE not in files:
        if identity is not None:
            report.failed("sigstore", f"nothing in the bundle was signed with Sigstore, by {identity} or anybody else.")
        return
    try:
        payload, names, issued_by, valid = certified(files[SIGSTORE])
    except ValueError as error:
        report.failed("sigstore", f"{SIGSTORE} {error}.")
        return
    statement = base64.b64decode(strict_json(files[ENVELOPE])["payload"])
    if not report.require(
        "sigstore",
        payload == statement,
        f"the same statement was signed by the key of a certificate that names {names}, by {issued_by}, and was valid "
        f"from {valid}.",
        f"another statement was signed with Sigstore than the one in {ENVELOPE}.",
    ):
        return
    if identity is None or confirm is None:
        report.unchecked(
            "certificate",
            f"that Sigstore issued it (chain), that its transparency log has the signature and when, and that "
            f"{names} is who you mean; that needs {HOW}",
        )
        return
    try:
        problem = confirm(files[SIGSTORE], identity, issuer)
    except OSError as error:
        report.unchecked("certificate", f"Sigstore's library could not check it ({error})")
        return
    by = f"{identity}{f', by {issuer}' if issuer else ''}"
    report.require(
        "certificate",
        problem is None,
        f"issued to {by}, and the signature is in the transparency log.",
        f"Sigstore's library refuses it for {by}: {problem}.",
    )
    if not issuer:
        report.unchecked("issuer", f"any may have checked the identity; this certificate names {issued_by} (--issuer)")


def certified(content: bytes) -> tuple[bytes, str, str, str]:
    """What the certificate in a Sigstore bundle signed; whom it names, by whom, and from when to when it was valid.
    Raises ValueError where it is no such bundle, or the signature is not of its key."""
    from cryptography import x509
    from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
    from cryptography.hazmat.primitives import hashes
    from cryptography.hazmat.primitives.asymmetric import ec

    try:
        bundle = strict_json(content)
        if not bundle["mediaType"].startswith(MEDIA_TYPE):
            raise ValueError(f"it has the type {bundle['mediaType']}")
        envelope = bundle["dsseEnvelope"]
        (signature,) = envelope["signatures"]
        signed = base64.b64decode(signature["sig"], validate=True)
        payload = base64.b64decode(envelope["payload"], validate=True)
        material = bundle["verificationMaterial"]
        # Since version 0.3 there is one certificate, before it was the first of a chain.
        leaf = material.get("certificate") or material["x509CertificateChain"]["certificates"][0]
        certificate = x509.load_der_x509_certificate(base64.b64decode(leaf["rawBytes"]))
        key = certificate.public_key()
        identity, issuer = _names(certificate)
    except (ValueError, KeyError, TypeError, AttributeError, IndexError, binascii.Error, UnsupportedAlgorithm) as error:
        raise ValueError(f"is not a Sigstore bundle with a certificate and a DSSE envelope ({error})") from error
    if envelope.get("payloadType") != PAYLOAD_TYPE or not isinstance(key, ec.EllipticCurvePublicKey):
        raise ValueError("must hold an in-toto statement, signed by an ECDSA key")
    try:
        key.verify(signed, pre_authentication(payload), ec.ECDSA(hashes.SHA256()))
    except InvalidSignature:
        raise ValueError("was changed after it was signed, or signed by another key than its certificate has") from None
    ends = (certificate.not_valid_before_utc, certificate.not_valid_after_utc)
    return payload, identity, issuer, " to ".join(f"{item:%Y-%m-%dT%H:%M:%SZ}" for item in ends)


def _names(certificate: Any) -> tuple[str, str]:
    from cryptography import x509

    names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    identities = [
        *names.get_values_for_type(x509.RFC822Name),
        *names.get_values_for_type(x509.UniformResourceIdentifier),
    ]
    issuers = [item.value.value for item in certificate.extensions if item.oid.dotted_string == ISSUER]
    # A DER string: its kind, its length, its bytes.
    issuer = issuers[0][2:].decode("utf-8", "replace") if issuers else "an issuer that it does not name"
    return ", ".join(identities) or "nobody", issuer
