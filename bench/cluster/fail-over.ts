/** From what happens to the leader until a write through another member is accepted. */
import { setTimeout as sleep } from "node:timers/promises";
import type { Subject } from "./subject.ts";

const WRITE_EVERY_MS = 10;
/** A write that has no answer by then is given up; others are on their way. */
const WRITE_PATIENCE_MS = 2_000;
const PATIENCE_MS = 30_000;

export type Deed = "SIGKILL" | "SIGSTOP";

/** @returns milliseconds */
export async function failOver(subject: Subject, deed: Deed): Promise<number> {
  const leader = await subject.leader();
  const others = subject.members.filter((member) => member !== leader);
  for (const member of others) await subject.write(member, WRITE_PATIENCE_MS); // All connections are open.
  const began = performance.now();
  subject.signal(leader, deed);
  const took = await firstAccepted(subject, others, began);
  if (deed === "SIGSTOP") subject.signal(leader, "SIGCONT");
  else await subject.startAgain(leader);
  await subject.leader();
  return took;
}

async function firstAccepted(subject: Subject, members: readonly string[], began: number): Promise<number> {
  let took: number | null = null;
  const under: Promise<void>[] = [];
  while (took === null) {
    if (performance.now() - began > PATIENCE_MS)
      throw new Error(`${subject.name} has taken no write within ${PATIENCE_MS} ms`);
    for (const member of members)
      under.push(
        subject.write(member, WRITE_PATIENCE_MS).then((isAccepted) => {
          if (isAccepted) took ??= performance.now() - began;
        }),
      );
    await sleep(WRITE_EVERY_MS);
  }
  await Promise.all(under);
  return took;
}
