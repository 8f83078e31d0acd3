/**
 * Channels on the replicated log: all members take part, founders or not. One that reads with a state has it as of one place of the
 * order, and then all that comes behind.
 */
import { describe, expect, it } from "vitest";
import type { Channel, Member } from "../../src/index.ts";
import { simulate } from "../../src/testing/index.ts";

const LOG = { order: "total", transport: "log" } as const;

const room = (member: Member): Channel<string> => member.channel<string>("room", LOG);

/** What a member has heard, its state included, as long as it runs. */
async function keep(member: Member, line: string[]): Promise<void> {
  for await (const said of room(member).read<string[]>({ state: () => line })) {
    if ("state" in said) line.splice(0, line.length, ...said.state);
    else line.push(said.payload);
  }
}

async function until(isTrue: () => boolean, sleep: (ms: number) => Promise<void>): Promise<void> {
  while (!isTrue()) await sleep(20);
}

describe("a channel on the log", () => {
  it("brings all members the same, in one order", async () => {
    const world = simulate({ members: 3, seed: 1 });
    await world.run(async () => {
      const members = [1, 2, 3].map((id) => world.member(id));
      const lines = members.map(() => [] as string[]);
      members.forEach((member, at) => void keep(member, lines[at] as string[]));
      const sent = await Promise.all(
        members.flatMap((member) => [1, 2].map((n) => room(member).send(`${member.id} ${n}`))),
      );
      expect(new Set(sent.map(({ id }) => id)).size).toBe(6);
      await until(() => lines.every((line) => line.length === 6), world.sleep);
      for (const line of lines) expect(line).toEqual(lines[0]);
    });
  });

  it("has who is added later: it gets the state, and then the messages behind it", async () => {
    const world = simulate({ members: 3, seed: 2 });
    await world.run(async () => {
      const lines = new Map<number, string[]>([1, 2, 3, 4].map((id) => [id, []]));
      for (const id of [1, 2, 3]) void keep(world.member(id), lines.get(id) as string[]);
      await room(world.member(1)).send("before");
      const fourth = await world.add(4);
      void keep(fourth, lines.get(4) as string[]);
      await room(world.member(2)).send("meanwhile");
      await room(fourth).send("from the fourth");
      await world.member(1).cluster.settled();
      await world.member(2).cluster.remove(1);
      await room(world.member(3)).send("after the first has gone");
      await until(() => [2, 3, 4].every((id) => lines.get(id)?.length === 4), world.sleep);
      for (const id of [3, 4]) expect(lines.get(id)).toEqual(lines.get(2));
    });
  });
});
