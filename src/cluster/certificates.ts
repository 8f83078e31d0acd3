/** Certificates for members: an authority of the cluster's own, and what it signs. A member's carries the DNS name `node-<id>`. */
import { isIP } from "node:net";
import type { SelfsignedOptions } from "selfsigned";
import { EnvironmentError } from "../core/errors.ts";

const DAY_MS = 86_400_000;
/** An authority outlasts the certificates that it signs. */
const AUTHORITY_DAYS = 3_650;
/** Clocks of machines differ: what was made just now is valid there, too. */
const EARLIER_MS = 3_600_000;

/** PEM. */
export interface Pair {
  readonly cert: string;
  readonly key: string;
}

/** An optional dependency: members that are given their certificates do without. @throws EnvironmentError where it is not installed */
async function generator() {
  const found = await import("selfsigned").catch((error: unknown) => {
    const text =
      "certificates need the package selfsigned, which is not installed: npm i selfsigned, or make them with openssl";
    throw new EnvironmentError("no-certificates", text, { cause: error });
  });
  return found.generate;
}

const ec = { keyType: "ec", curve: "P-256", algorithm: "sha256" } as const;

function validFor(days: number, now: number): Pick<SelfsignedOptions, "notBeforeDate" | "notAfterDate"> {
  return { notBeforeDate: new Date(now - EARLIER_MS), notAfterDate: new Date(now + days * DAY_MS) };
}

/** @param name of the cluster, for people who look at the certificate. @param now in milliseconds since 1970. */
export async function makeAuthority(name: string, now: number): Promise<Pair> {
  const generate = await generator();
  const made = await generate([{ name: "commonName", value: name }], {
    ...ec,
    ...validFor(AUTHORITY_DAYS, now),
    extensions: [
      { name: "basicConstraints", cA: true, critical: true },
      { name: "keyUsage", keyCertSign: true, cRLSign: true, critical: true },
    ],
  });
  return { cert: made.cert, key: made.private };
}

/** A certificate for these DNS names and IP addresses, the first of which it is called by, for both ends of a connection. */
export async function issue(authority: Pair, names: readonly string[], days: number, now: number): Promise<Pair> {
  const generate = await generator();
  const made = await generate([{ name: "commonName", value: names[0] ?? "nobody" }], {
    ...ec,
    ...validFor(days, now),
    ca: authority,
    extensions: [
      { name: "basicConstraints", cA: false },
      { name: "extKeyUsage", serverAuth: true, clientAuth: true },
      { name: "subjectAltName", altNames: names.map(altName) },
    ],
  });
  return { cert: made.cert, key: made.private };
}

const altName = (name: string) =>
  isIP(name) === 0 ? { type: 2 as const, value: name } : { type: 7 as const, ip: name };
