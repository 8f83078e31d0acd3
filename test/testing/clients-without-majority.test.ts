/**
 * Checks clients that connect while a majority of the members is down: the errors they get, and the resources they use.
 */
import { expect, test } from "vitest";
import { simulate, type World } from "../../src/testing/index.ts";
import { endpointOf } from "../../src/testing/simulated-clients.ts";

const ALONE = "only 1 of 3 members can be reached, and a majority is needed";

/** Only member 1 remains. */
const loseMajority = (world: World): void => {
  for (const id of [2, 3]) world.kill(id);
};

/** Connects a client to member 1 repeatedly; it gives up each time. */
async function comesAgain(world: World, machine: number, { times, timeoutMs }: { times: number; timeoutMs: number }) {
  for (let time = 0; time < times; time++) {
    await expect(world.connect({ machine, members: [1], timeoutMs })).rejects.toMatchObject({ code: "no-endpoint" });
    world.kill(machine);
  }
}

test("clients that connect repeatedly use neither the member's own capacity nor entries of the log", async () => {
  const world = simulate({ members: 3, seed: 1 });
  await world.run(async () => {
    const stock = world.member(1).map<number>("stock");
    const before = await stock.put("a", 1);
    loseMajority(world);
    const clients = Array.from({ length: 130 }, (_, at) => 1_000 + at);
    await Promise.all(clients.map((machine) => comesAgain(world, machine, { times: 10, timeoutMs: 60 })));
    await expect(stock.put("a", 2, { timeoutMs: 500 })).rejects.toMatchObject({
      code: "request-timeout",
      message: expect.stringContaining(ALONE),
    });
    for (const id of [2, 3]) await world.restart(id);
    const after = await stock.put("a", 3, { timeoutMs: 20_000 });
    expect(after - before).toBeLessThan(20);
  });
});

test("clients that connect get an error about the missing majority, whether or not their member knew of it", async () => {
  const world = simulate({ members: 3, seed: 2 });
  await world.run(async () => {
    await world.member(1).map("stock").put("a", 1);
    const [one, ...others] = [1, 2, 3].map(endpointOf);
    for (const machine of [1_000, 1_001]) {
      if (machine === 1_000) loseMajority(world);
      const refused = world.connect({ machine, timeoutMs: 3_000 });
      await expect(refused).rejects.toMatchObject({
        code: "no-endpoint",
        message: `none of ${[one, ...others].join(", ")} accepted this client within 3000 ms: ${one}: the member does not know who leads the log: ${ALONE}; ${others.join(", ")}: the connection was refused: nothing listens at this address (ECONNREFUSED)`,
      });
    }
  });
});

test("a client that was connected gets the error from its calls as well", async () => {
  const world = simulate({ members: 3, seed: 1 });
  await world.run(async () => {
    const client = await world.connect({ members: [1] });
    const stock = client.map("stock");
    await stock.put("a", 1);
    await world.sleep(500);
    expect(client.status().endpoints).toHaveLength(3);
    loseMajority(world);
    await expect(stock.put("a", 2, { timeoutMs: 600 })).rejects.toMatchObject({
      message: expect.stringMatching(
        /within 600 ms: member 1 does not know who leads the log; it may have taken effect/,
      ),
    });
    await expect(stock.put("a", 2, { timeoutMs: 3_000 })).rejects.toMatchObject({
      code: "request-timeout",
      phase: "uncertain",
      message: expect.stringMatching(
        RegExp(
          `was not answered within 3000 ms: no member accepts this client \\(.*${ALONE}; .*ECONNREFUSED\\)\\); it may have taken effect, or may still take effect$`,
        ),
      ),
    });
  });
});

test("members and clients that wait in vain report the reason, as calls do", async () => {
  const world = simulate({ members: 3, seed: 1 });
  await world.run(async () => {
    const client = await world.connect({ members: [1] });
    await world.member(1).mutex("taken").acquire();
    await client.map("stock").put("a", 1);
    await expect(client.mutex("taken").acquire({ timeoutMs: 500 })).rejects.toMatchObject({
      message: 'the lock "taken" was not acquired within 500 ms',
    });
    loseMajority(world);
    const late = { code: "acquire-timeout", phase: "never-acquired" };
    const options = { timeoutMs: 3_000 };
    const unreached = expect.stringMatching(
      RegExp(`^.* was not acquired within 3000 ms: no member accepts this client \\(.*${ALONE}; .*ECONNREFUSED\\)\\)`),
    );
    await Promise.all([
      expect(world.member(1).mutex("free").acquire(options)).rejects.toMatchObject({
        ...late,
        message: `the lock "free" was not acquired within 3000 ms: ${ALONE}`,
      }),
      ...[client.mutex("free"), client.semaphore("free", { permits: 1 })].map((lock) =>
        expect(lock.acquire(options)).rejects.toMatchObject({ ...late, message: unreached }),
      ),
      expect(client.queue("free").take(options)).rejects.toMatchObject({ ...late, message: unreached }),
      expect(client.barrier("free", { parties: 2 }).arrive(options)).rejects.toMatchObject({ message: unreached }),
    ]);
  });
});
