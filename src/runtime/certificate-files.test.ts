import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeAll, beforeEach, describe, expect, test, vi } from "vitest";
import { type Authority, authority } from "../../test/network/certificates.ts";
import { PATIENCE } from "../../test/patience.ts";
import { CertificateRenewal } from "./certificate-files.ts";
import { createLog } from "./log.ts";
import type { Counts } from "./metrics.ts";
import type { TlsMaterial } from "./platform/platform.ts";
import { realPlatform } from "./platform/real.ts";

let ours: Authority;
beforeAll(async () => {
  ours = await authority("ours");
});

let folder = "";
let lines: string[];
let renewed: TlsMaterial[];
let renewal: CertificateRenewal<TlsMaterial>;
let counts: Pick<Counts, "certificateDays">;
/** Runs the check that the member makes every half minute. */
let look: () => void;
/** The number of completed checks. Files must not change during a check. */
let looks: number;

function write({ ca, cert, key }: TlsMaterial): void {
  for (const [name, text] of Object.entries({ "ca.pem": ca, "node-2.pem": cert, "node-2.key": key }))
    writeFileSync(join(folder, name), text);
}

beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), "coterie-renewal-"));
  const [said, used]: [string[], TlsMaterial[]] = [[], []]; // Discard the results of a check from the previous test.
  [lines, renewed] = [said, used];
  write(await ours.issueFor(40, "node-2"));
  const timers = {
    ...realPlatform.timers,
    every: (_ms: number, then: () => void) => {
      look = then;
      const timer = { unref: () => timer };
      return timer;
    },
    cancel: vi.fn(),
  };
  counts = { certificateDays: {} };
  looks = 0;
  const wall = (): number => {
    looks += 1;
    return Date.now();
  };
  renewal = new CertificateRenewal({
    platform: { timers, clock: { wall } },
    id: 2,
    use: "members",
    counts,
    files: { ca: join(folder, "ca.pem"), cert: join(folder, "node-{id}.pem"), key: join(folder, "node-{id}.key") },
    log: createLog((level, line) => said.push(`${level} ${line}`)),
    renew: (tls) => used.push(tls),
  });
  look();
  await vi.waitFor(() => expect(renewed).toHaveLength(1), PATIENCE);
});
afterEach(() => {
  renewal.stop();
  rmSync(folder, { recursive: true });
});

describe("certificate files of a member that runs", () => {
  test("are reloaded only after they have changed", async () => {
    look();
    await vi.waitFor(() => expect(looks).toBe(2), PATIENCE);
    const next = await ours.issueFor(40, "node-2");
    write(next);
    await vi.waitFor(() => {
      look();
      expect(renewed.at(-1)).toEqual(next);
    }, PATIENCE);
    expect(renewed).toHaveLength(2);
    expect(lines).toEqual([expect.stringContaining("info new connections use the renewed certificate")]);
  });

  test("are reported before and after they expire, with the date and the remedy", async () => {
    expect(counts.certificateDays.members).toBeGreaterThan(39);
    write(await ours.issueFor(3, "node-2"));
    await vi.waitFor(() => {
      look();
      expect(lines.at(-1)).toContain(
        "the certificate that this member presents to other members expires in 2 days: it is valid until",
      );
    }, PATIENCE);
    write(await ours.issueEarlier(3, "node-2"));
    await vi.waitFor(() => {
      look();
      expect(lines.at(-1)).toMatch(/presents to other members has expired: .*; replace .*node-2.pem and its key/);
    }, PATIENCE);
    expect(counts.certificateDays.members).toBeLessThan(-1);
  });

  test("change nothing while one of a pair is missing or outdated, which is logged once", async () => {
    const next = await ours.issueFor(40, "node-2");
    writeFileSync(join(folder, "node-2.pem"), next.cert);
    await vi.waitFor(() => {
      look();
      expect(lines).toHaveLength(1);
    }, PATIENCE);
    expect(lines[0]).toContain("warn cannot use the new certificate files, so the previous certificate stays in use:");
    rmSync(join(folder, "node-2.pem"));
    look();
    write(next);
    await vi.waitFor(() => {
      look();
      expect(renewed).toHaveLength(2);
    }, PATIENCE);
    expect(lines.filter((line) => line.startsWith("warn"))).toEqual([lines[0]]);
  });
});
