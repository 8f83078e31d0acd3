/**
 * Checks programs that replicate a state over a channel, in virtual time: under faults, all converge to one state
 * without duplicates.
 */
import { describe, expect, test } from "vitest";
import type { Channel, ChannelOptions, Member, NodeId } from "../../src/index.ts";
import { type ProcessTools, simulate, type World } from "../../src/testing/index.ts";

const FAULTS_MS = 5_000;
const MENDED_MS = FAULTS_MS + 3_500;

/** A program whose state is the list of operations it has applied, in order. */
interface Copy {
  line: string[];
  states: number;
}

function replicas(seed: number, options: ChannelOptions, members = 3) {
  const copies = new Map<NodeId, Copy>();
  let isEnding = false;
  const read = async (channel: Channel<string>, copy: Copy): Promise<void> => {
    for await (const message of channel.read({ state: () => copy.line })) {
      if ("state" in message) {
        copy.line = [...message.state];
        copy.states += 1;
      } else copy.line.push(message.payload);
    }
  };
  const write = async (channel: Channel<string>, member: Member, tools: ProcessTools): Promise<void> => {
    for (let number = 1; !isEnding; number++) {
      await channel.send(`${member.id} ${tools.now()} ${number}`, { timeoutMs: 2_000 }).catch(() => undefined);
      await tools.sleep(20 + Math.floor(tools.random() * 200));
    }
  };
  const world = simulate({
    members,
    seed,
    faults: { forMs: FAULTS_MS },
    async program(member, tools) {
      const copy: Copy = { line: [], states: 0 };
      copies.set(member.id, copy);
      const channel = member.channel<string>("stock", options);
      await Promise.all([read(channel, copy), write(channel, member, tools)]);
    },
  });
  return {
    world,
    copies,
    end: () => {
      isEnding = true;
    },
  };
}

async function agree(world: World, copies: ReadonlyMap<NodeId, Copy>, members: number): Promise<void> {
  const all = [...copies.values()];
  for (let waited = 0; waited < 60_000; waited += 100) {
    const lines = all.map(({ line }) => line.join("\n"));
    const isWhole = lines.every((line) => line === lines[0] && line.includes("last of"));
    if (isWhole && all.every(({ line }) => line.filter((each) => each.startsWith("last of")).length === members))
      return;
    await world.sleep(100);
  }
  throw new Error(
    `no one state within a minute: ${JSON.stringify(all.map(({ line, states }) => [line.slice(-5), states]))}`,
  );
}

async function until(world: World, isSo: () => boolean): Promise<void> {
  for (let waited = 0; !isSo(); waited += 10) {
    if (waited > 60_000) throw new Error("not so within a minute");
    await world.sleep(10);
  }
}

describe("a state that programs replicate over a channel", () => {
  const title = "converges under faults: seed %d";
  const orderOf = (seed: number) => ({ order: seed % 2 === 0 ? "total" : "causal-total" }) as const;
  const onLog = (seed: number) => ({ ...orderOf(seed), transport: "log" }) as const;
  const [few, more] = [[1, 2], Array.from({ length: 40 }, (_, seed) => seed + 10)];
  test.each(few)(title, (seed) => comesToBeOne(seed, orderOf(seed)));
  test.each(more)(title, { tags: ["larger"] }, (seed) => comesToBeOne(seed, orderOf(seed)));
  test.each(few)(`on the log it ${title}`, (seed) => comesToBeOne(seed, onLog(seed)));
  test.each(more)(`on the log it ${title}`, { tags: ["larger"] }, (seed) => comesToBeOne(seed, onLog(seed)));

  async function comesToBeOne(seed: number, options: ChannelOptions): Promise<void> {
    const { world, copies, end } = replicas(seed, options);
    await world.run(async () => {
      await world.sleep(MENDED_MS);
      end();
      await world.sleep(3_000);
      for (const id of copies.keys()) await world.member(id).channel<string>("stock", options).send(`last of ${id}`);
      await agree(world, copies, copies.size);
    });
    const [first] = [...copies.values()];
    expect(first?.line.length).toBeGreaterThan(3);
    expect(new Set(first?.line).size).toBe(first?.line.length);
  }

  const transports = ["tcp", "log"] as const;
  const later =
    "a late reader gets the state and then the messages, even of 2 MB, and gets it again when it reopens the channel";
  test.each(transports)(`${later}: %s`, async (transport) => {
    const options = { order: "total", transport } as const;
    const world = simulate({ members: 3, seed: 7 });
    await world.run(async () => {
      const big = "x".repeat(50_000);
      const line: string[] = [];
      const one = world.member(1).channel<string>("stock", options);
      void (async () => {
        for await (const message of one.read({ state: () => line }))
          if ("payload" in message) line.push(message.payload);
      })();
      for (let n = 0; n < 40; n++) await one.send(`${n} ${big}`);
      await until(world, () => line.length === 40);
      for (let again = 0; again < 2; again++) {
        const other = world.member(2).channel<string>("stock", options);
        const got: string[] = [];
        let states = 0;
        void (async () => {
          for await (const message of other.read({ state: () => got })) {
            if ("state" in message) {
              got.push(...message.state);
              states += 1;
            } else got.push(message.payload);
          }
        })();
        await one.send("after");
        await until(world, () => got.length === line.length);
        expect({ states, got: got.join() === line.join() }).toEqual({ states: 1, got: true });
        await other.close();
      }
    });
  });
});
