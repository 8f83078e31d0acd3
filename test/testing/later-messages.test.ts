/**
 * Checks messages to members that are added later: through a map, which also has the state, and on channels. For
 * channels on the log, see `log-channels.test.ts`.
 */
import { describe, expect, test } from "vitest";
import type { Member } from "../../src/index.ts";
import { simulate } from "../../src/testing/index.ts";

const FAULTS_MS = 4_000;
const MENDED_MS = FAULTS_MS + 3_000;
const WITHIN = { timeoutMs: 60_000 };

interface Said {
  readonly text: string;
}

/** Reads the state of the map and all later changes. */
async function follow(member: Member, taken: { state: string[]; heard: string[] }): Promise<void> {
  const room = member.map<Said>("room");
  const { entries, revision } = await room.range(WITHIN);
  taken.state = entries.map((entry) => `${entry.revision} ${entry.value.text}`);
  for await (const change of room.watch({ after: revision }))
    if (change.type === "put") taken.heard.push(`${change.revision} ${change.value.text}`);
}

describe("a member that is added while others send", () => {
  test.each([1, 2, 3])(
    "has the state, and then receives all messages in the order of the others: seed %d",
    async (seed) => {
      const heard = new Map<number, { state: string[]; heard: string[] }>();
      const world = simulate({
        members: 3,
        seed,
        faults: { forMs: FAULTS_MS, kinds: ["pause", "partition", "lossy", "cut", "slow"] },
        async program(member, tools) {
          const taken = { state: [], heard: [] };
          heard.set(member.id, taken);
          void follow(member, taken).catch(() => {}); // The comparison below detects missing messages.
          for (let number = 1; tools.now() < MENDED_MS; number++) {
            const text = `${member.id} ${number}`;
            await member
              .map<Said>("room")
              .put(`${member.id}`, { text }, { timeoutMs: 2_000 })
              .catch(() => undefined);
            await tools.sleep(20 + Math.floor(tools.random() * 100));
          }
        },
      });
      await world.run(async () => {
        await world.sleep(500);
        await world.add(4, WITHIN);
        await world.sleep(MENDED_MS - world.now() + 500);
        const last = await world.member(1).map<Said>("room").put("end", { text: "the end" }, WITHIN);
        const all = [...heard.values()];
        // More may follow.
        const until = (line: readonly string[]) => line.slice(0, line.indexOf(`${last} the end`) + 1);
        while (all.some(({ heard: line }) => until(line).length === 0)) await world.sleep(50);
        const lines = all.map(({ heard: line }) => until(line)).toSorted((a, b) => b.length - a.length);
        for (const line of lines) expect(line).toEqual(lines[0]?.slice(-line.length));
        const fourth = heard.get(4) as { state: string[]; heard: string[] };
        expect(fourth.state.length).toBeGreaterThan(0);
        expect(fourth.heard.some((line) => / 4 \d+$/.test(line))).toBe(true);
        const began = Number(fourth.heard[0]?.split(" ")[0]);
        for (const line of fourth.state) expect(Number(line.split(" ")[0])).toBeLessThan(began);
      });
    },
  );

  test("receives messages on a channel over links once it has opened it, and the founders receive its messages", async () => {
    const world = simulate({ members: 3, seed: 4 });
    await world.run(async () => {
      const open = (member: Member) => member.channel<string>("room", { order: "total" });
      const first = open(world.member(1));
      const readers = [first.read(), open(await world.add(4)).read()];
      for await (const { members } of first.views()) if (members.length === 2) break;
      await first.send("from a founder");
      await open(world.member(4)).send("from the added member");
      for (const reader of readers)
        for (const payload of ["from a founder", "from the added member"])
          expect((await reader.next()).value).toMatchObject({ payload });
    });
  });
});
