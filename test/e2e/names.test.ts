/**
 * Thousands of names, one after the other, through real processes: they leave neither instances nor journals nor memory behind.
 *
 * @module-tag long
 */
import { statSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { until } from "./cluster-under-test.ts";
import { type Joined, joinedAt, type Place, place } from "./joined-members.ts";

const FIRST = 300;
const NAMES = 3_000;
/** Besides what is compiled meanwhile; a lock that stayed would cost several times as much. */
const MOST_BYTES_PER_NAME = 1_000;

interface Measured {
  readonly heapBytes: number;
  readonly journalBytes: number;
}

/** How large a member is once it has put away all names. */
async function measured(member: Joined, { data }: Place): Promise<Measured> {
  let instances = Number.NaN;
  const { heapBytes } = await until(
    () => `member ${member.id} has put away all names, but it has ${instances}`,
    async () => {
      const before = member.saidAlready("measured").length;
      member.order({ do: "measure" });
      const found = await until("it measures", () => member.saidAlready("measured")[before]);
      ({ instances } = found);
      return instances === 0 ? found : null;
    },
  );
  return { heapBytes, journalBytes: statSync(join(data, String(member.id), "journal")).size };
}

const named = (member: Joined, times: number): Promise<unknown> =>
  until(
    () => `member ${member.id} has used its names, but its errors were ${JSON.stringify(member.errors)}`,
    () => member.saidAlready("named")[times - 1],
    undefined,
  );

test(`${NAMES} locks, one after the other: no instance stays, and heaps and journals are bounded`, async () => {
  const where = await place(3);
  const members = await joinedAt(where);
  const worker = members[1] as Joined;
  worker.order({ do: "names", count: FIRST }); // What each part needs once is there from here on.
  await named(worker, 1);
  const before = await Promise.all(members.map((member) => measured(member, where)));
  worker.order({ do: "names", count: NAMES });
  await named(worker, 2);
  const after = await Promise.all(members.map((member) => measured(member, where)));
  expect(worker.saidAlready("named").map(({ tokens }) => tokens)).toEqual([FIRST, NAMES]);
  for (const [index, { heapBytes, journalBytes }] of after.entries()) {
    const { heapBytes: heapBefore } = before[index] as Measured;
    const kilobytes = (bytes: number): number => Math.round(bytes / 1_000);
    console.log(
      `names: member ${index + 1}: heap ${kilobytes(heapBefore)} to ${kilobytes(heapBytes)} kB, journal ${kilobytes(journalBytes)} kB`,
    );
    expect(heapBytes - heapBefore).toBeLessThan(NAMES * MOST_BYTES_PER_NAME);
    expect(journalBytes).toBeLessThan(2 * 2 ** 20); // It is written anew once it has more than 1 MiB.
  }
});
