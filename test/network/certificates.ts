/** Certificates made on the spot: an authority, and members' certificates that it signs. */
import { issue, makeAuthority } from "../../src/cluster/certificates.ts";
import type { TlsMaterial } from "../../src/runtime/platform/platform.ts";

export interface Authority {
  readonly cert: string;
  /** A certificate for these DNS names, with its key. */
  issue(...names: string[]): Promise<TlsMaterial>;
}

export async function authority(name: string): Promise<Authority> {
  const ca = await makeAuthority(name, Date.now());
  return {
    cert: ca.cert,
    issue: async (...names) => ({ ca: ca.cert, ...(await issue(ca, names, 1, Date.now())) }),
  };
}
