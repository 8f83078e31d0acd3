/** Creates certificates for a test: an authority, and members' certificates signed by it. */
import { issue, makeAuthority } from "../../src/cluster/certificates.ts";
import type { TlsMaterial } from "../../src/runtime/platform/platform.ts";

export interface Authority {
  readonly cert: string;
  /** Issues a certificate for these DNS names that is valid for one day. Resolves with the certificate and its key. */
  issue(...names: string[]): Promise<TlsMaterial>;
  issueFor(days: number, ...names: string[]): Promise<TlsMaterial>;
  /** Issues a certificate that was valid for one day, `daysAgo` days ago. */
  issueEarlier(daysAgo: number, ...names: string[]): Promise<TlsMaterial>;
}

const DAY_MS = 86_400_000;

export async function authority(name: string): Promise<Authority> {
  const ca = await makeAuthority(name, Date.now());
  const issued = async (names: string[], days: number, now = Date.now()): Promise<TlsMaterial> => ({
    ca: ca.cert,
    ...(await issue(ca, names, days, now)),
  });
  return {
    cert: ca.cert,
    issue: (...names) => issued(names, 1),
    issueFor: (days, ...names) => issued(names, days),
    issueEarlier: (daysAgo, ...names) => issued(names, 1, Date.now() - daysAgo * DAY_MS),
  };
}
