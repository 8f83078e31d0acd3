/** Certificates made on the spot: an authority, and members' certificates that it signs. */
import { generate } from "selfsigned";
import type { TlsMaterial } from "../../src/runtime/platform/platform.ts";

export interface Authority {
  readonly cert: string;
  /** A certificate for these DNS names, with its key. */
  issue(...names: string[]): Promise<TlsMaterial>;
}

const quick = { keyType: "ec", algorithm: "sha256" } as const;

export async function authority(name: string): Promise<Authority> {
  const ca = await generate([{ name: "commonName", value: name }], {
    ...quick,
    extensions: [
      { name: "basicConstraints", cA: true, critical: true },
      { name: "keyUsage", keyCertSign: true, critical: true },
    ],
  });
  return {
    cert: ca.cert,
    async issue(...names) {
      const issued = await generate([{ name: "commonName", value: names[0] ?? "nobody" }], {
        ...quick,
        ca: { key: ca.private, cert: ca.cert },
        extensions: [
          { name: "basicConstraints", cA: false },
          { name: "extKeyUsage", serverAuth: true, clientAuth: true },
          { name: "subjectAltName", altNames: names.map((value) => ({ type: 2, value })) },
        ],
      });
      return { ca: ca.cert, cert: issued.cert, key: issued.private };
    },
  };
}
