/**
 * A report that must be written exactly once a night, by any of three replicas. `nightly-report.test.ts` runs this code
 * under a thousand random fault plans: machines crash, processes are paused, the network is cut.
 */
import { setTimeout as realSleep } from "node:timers/promises";
import { CoordinationError, type Member, StaleToken } from "coterie";

/** The archive of reports. Each call passes its token, and throws `StaleToken` once the archive has seen a higher one. */
export interface Archive {
  has(night: number, token: number): Promise<boolean>;
  write(night: number, token: number): Promise<void>;
}

/** Returns once the report of this night is in the archive, no matter which replica has written it. */
export async function writeReport(
  member: Member,
  archive: Archive,
  night: number,
  sleep: (ms: number) => Promise<void> = realSleep,
): Promise<void> {
  for (;;) {
    try {
      return await member.mutex("nightly-report").use(async ({ token }) => {
        if (!(await archive.has(night, token))) await archive.write(night, token);
      });
    } catch (error) {
      const isLost = error instanceof CoordinationError || error instanceof StaleToken;
      if (!isLost || member.signal.aborted) throw error;
      await sleep(100); // The lock was lost, or another replica holds it: check again.
    }
  }
}
