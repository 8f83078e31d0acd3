/**
 * Creates certificates: the cluster's own certificate authority (CA), and the certificates that it signs. A member's
 * certificate has the DNS name `node-<id>`. A client's certificate has the client's name.
 */
import { createPrivateKey, webcrypto } from "node:crypto";
import { isIP } from "node:net";
import type { Extension, X509Certificate } from "@peculiar/x509";
import { EnvironmentError, UsageError } from "../core/errors.ts";

const DAY_MS = 86_400_000;
/** Longer than the lifetime of the certificates that the authority signs. */
const AUTHORITY_DAYS = 3_650;
/** How far a certificate's start of validity is backdated, because machines' clocks differ. */
const EARLIER_MS = 3_600_000;

/** A certificate and its key, in PEM format. */
export interface Pair {
  readonly cert: string;
  readonly key: string;
}

/** Whether the holder of a certificate may accept and open connections, or only open them as a client. */
export type Purpose = "both" | "client";

/**
 * Loads an optional dependency, which is not needed if members already have certificates.
 * @throws EnvironmentError if it is not installed
 */
async function library() {
  return import("@peculiar/x509").catch((error: unknown) => {
    const text =
      "certificates need the package @peculiar/x509, which is not installed: npm i @peculiar/x509, or create them with openssl";
    throw new EnvironmentError("no-certificates", text, { cause: error });
  });
}
type Library = Awaited<ReturnType<typeof library>>;

const CURVES: Readonly<Record<string, string>> = { prime256v1: "P-256", secp384r1: "P-384", secp521r1: "P-521" };
const SIGNING = { name: "ECDSA", hash: "SHA-256" } as const;

const newKeys = () => webcrypto.subtle.generateKey({ name: "ECDSA", namedCurve: "P-256" }, true, ["sign", "verify"]);

async function pairOf(certificate: X509Certificate, privateKey: webcrypto.CryptoKey): Promise<Pair> {
  const key = Buffer.from(await webcrypto.subtle.exportKey("pkcs8", privateKey));
  return {
    cert: `${certificate.toString("pem")}\n`,
    key: createPrivateKey({ key, format: "der", type: "pkcs8" }).export({ format: "pem", type: "pkcs8" }).toString(),
  };
}

const validFor = (days: number, now: number) => ({
  notBefore: new Date(now - EARLIER_MS),
  notAfter: new Date(now + days * DAY_MS),
});

/**
 * @param name the cluster's name, for people who read the certificate
 * @param now in milliseconds since the Unix epoch
 */
export async function makeAuthority(name: string, now: number): Promise<Pair> {
  const x509 = await library();
  const keys = await newKeys();
  const certificate = await x509.X509CertificateGenerator.createSelfSigned({
    name: [{ CN: [name] }],
    ...validFor(AUTHORITY_DAYS, now),
    signingAlgorithm: SIGNING,
    keys,
    extensions: [
      new x509.BasicConstraintsExtension(true, undefined, true),
      new x509.KeyUsagesExtension(x509.KeyUsageFlags.keyCertSign | x509.KeyUsageFlags.cRLSign, true),
      await x509.SubjectKeyIdentifierExtension.create(keys.publicKey),
    ],
  });
  return pairOf(certificate, keys.privateKey);
}

/**
 * Issues a certificate for these DNS names and IP addresses. The first one becomes its common name.
 * @throws UsageError if the authority's key has an unsupported type
 */
export async function issue(
  authority: Pair,
  names: readonly string[],
  days: number,
  now: number,
  purpose: Purpose = "both",
): Promise<Pair> {
  const x509 = await library();
  const signingKey = await signingKeyOf(authority.key);
  const issuer = new x509.X509Certificate(authority.cert);
  const keys = await newKeys();
  const { serverAuth, clientAuth } = x509.ExtendedKeyUsage;
  const certificate = await x509.X509CertificateGenerator.create({
    subject: [{ CN: [names[0] ?? "nobody"] }],
    issuer: issuer.subjectName,
    ...validFor(days, now),
    signingAlgorithm: SIGNING,
    publicKey: keys.publicKey,
    signingKey,
    extensions: [
      new x509.BasicConstraintsExtension(false),
      new x509.ExtendedKeyUsageExtension(purpose === "client" ? [clientAuth] : [serverAuth, clientAuth]),
      new x509.SubjectAlternativeNameExtension(
        names.map((value) => ({ type: isIP(value) === 0 ? ("dns" as const) : ("ip" as const), value })),
      ),
      await x509.SubjectKeyIdentifierExtension.create(keys.publicKey),
      await identifierOf(x509, issuer),
    ],
  });
  return pairOf(certificate, keys.privateKey);
}

/**
 * Returns the extension that identifies the signing authority, since two authorities may have the same name. A CA
 * certificate from an older `coterie cert` has no key identifier, so the identifier is computed from its public key.
 */
async function identifierOf(x509: Library, issuer: X509Certificate): Promise<Extension> {
  const own = issuer.getExtension(x509.SubjectKeyIdentifierExtension);
  return own === null
    ? x509.AuthorityKeyIdentifierExtension.create(issuer.publicKey)
    : new x509.AuthorityKeyIdentifierExtension(own.keyId);
}

/** @throws UsageError if the key cannot sign */
async function signingKeyOf(pem: string): Promise<webcrypto.CryptoKey> {
  const key = createPrivateKey(pem);
  const { namedCurve = "" } = key.asymmetricKeyDetails ?? {};
  const curve = CURVES[namedCurve];
  if (curve === undefined) {
    const text = `expected the authority's key to use one of the curves ${Object.values(CURVES).join(", ")}`;
    throw new UsageError("wrong-authority", `${text}, got ${namedCurve || key.asymmetricKeyType}`);
  }
  const der = key.export({ format: "der", type: "pkcs8" });
  return webcrypto.subtle.importKey("pkcs8", der, { name: "ECDSA", namedCurve: curve }, false, ["sign"]);
}

/** Returns the DNS names and IP addresses in a certificate, except `own`. Throws if it is not a certificate. */
export async function hostsIn(cert: string, own: string): Promise<readonly string[]> {
  const x509 = await library();
  const found = new x509.X509Certificate(cert).getExtension(x509.SubjectAlternativeNameExtension);
  const names = found?.names.items ?? [];
  return names.flatMap(({ type, value }) => ((type === "dns" || type === "ip") && value !== own ? [value] : []));
}
