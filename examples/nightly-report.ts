/**
 * A report that is to be written exactly once a night, by any one of three replicas. `nightly-report.test.ts` runs this very code
 * under a thousand random fault plans: machines crash, processes stand still, the network is cut.
 */
import { setTimeout as realSleep } from "node:timers/promises";
import { CoordinationError, type Member, StaleToken } from "coterie";

/** Where reports are kept. Each call names its token, and is refused with a `StaleToken` once a later one has been seen. */
export interface Archive {
  has(night: number, token: number): Promise<boolean>;
  write(night: number, token: number): Promise<void>;
}

/** Returns once the report of this night is in the archive, no matter who has written it. */
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
      await sleep(100); // The lock was lost, or another replica has it: look again.
    }
  }
}
