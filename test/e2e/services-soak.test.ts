/**
 * The programs of five members constantly contend for one lock and campaign in one election, while members are killed,
 * paused, cut off, lose their folders, are restarted with a different release, and meet nodes with a different member
 * list. No two programs may be certain at once, and no token may be repeated. COTERIE_SOAK=200 makes it long;
 * COTERIE_SEED repeats its choices.
 *
 * @module-tag long
 */
import { expect, test } from "vitest";
import { random } from "../../src/core/random.ts";

import { folder } from "./joined-members.ts";
import { buildLaterRelease } from "./later-release.ts";
import { deedNames, SoakedMembers } from "./soaked-members.ts";

const count = Number(process.env.COTERIE_SOAK ?? 10);
const seed = Number(process.env.COTERIE_SEED ?? Date.now() % 1_000_000);

test(`through ${count} random actions, at most one is certain of the lock or of leading, and no token is repeated`, async () => {
  console.log(`soak: COTERIE_SOAK=${count} COTERIE_SEED=${seed}`);
  const soaked = await SoakedMembers.of(5, random(seed), buildLaterRelease(folder).packageUrl);
  const deeds: string[] = [];
  const counts = new Map(deedNames.map((name) => [name, 0]));
  const began = performance.now();
  try {
    await soaked.begin();
    await soaked.isPassedOn();
    for (let number = 1; number <= count; number++) {
      const deed = soaked.draw();
      counts.set(deed, (counts.get(deed) ?? 0) + 1);
      await soaked.carryOut(deed, (text) => deeds.push(text));
      await soaked.isPassedOn();
      expect(soaked.disorder()).toEqual([]);
      if (number % 20 === 0) say(number);
    }
    await soaked.settle();
    expect(soaked.disorder()).toEqual([]);
    say(count);
  } catch (error) {
    console.log(`soak: failed, COTERIE_SEED=${seed}, after ${deeds.length} actions; the last ones are`);
    for (const deed of deeds.slice(-12)) console.log(`soak: ${deed}`);
    console.log(soaked.picture());
    throw error;
  }

  function say(number: number): void {
    const seconds = Math.round((performance.now() - began) / 1_000);
    const { grants, leaderships } = soaked;
    const each = [...counts].map(([name, times]) => `${times} ${name}`).join(", ");
    console.log(`soak: ${number} deeds in ${seconds} s (${each}): ${grants} grants, ${leaderships} leaderships`);
  }
});
