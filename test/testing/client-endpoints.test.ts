/** Checks that clients learn the endpoints of members as members are added and removed. */
import { expect, test } from "vitest";
import { serviceOf } from "../../src/client/client.ts";
import type { RemoteService } from "../../src/client/remote-service.ts";
import type { JoinedMember } from "../../src/cluster/services/joined-member.ts";
import { ENDPOINTS } from "../../src/protocols/service/coordination-service/operations.ts";
import { simulate, type World } from "../../src/testing/index.ts";
import { endpointOf } from "../../src/testing/simulated-clients.ts";

async function until(world: World, isSo: () => boolean): Promise<void> {
  for (const end = world.now() + 30_000; !isSo() && world.now() < end; ) await world.sleep(20);
  expect(isSo()).toBe(true);
}

const at = (...members: number[]): string[] => members.map(endpointOf);

test("a client with one endpoint learns the others, new ones and removed ones", async () => {
  const world = simulate({ members: 3, seed: 1 });
  await world.run(async () => {
    const client = await world.connect({ members: [2] });
    await until(world, () => client.status().endpoints.length === 3);
    expect(client.status().endpoints).toEqual(at(2, 1, 3));
    await world.add(4);
    await until(world, () => client.status().endpoints.includes(endpointOf(4)));
    await world.remove(1);
    await until(world, () => !client.status().endpoints.includes(endpointOf(1)));
    expect(client.status().endpoints).toEqual(at(2, 3, 4));
    await client.close();
  });
});

test("a client without discovery knows only the endpoints it was configured with", async () => {
  const world = simulate({ members: 3, seed: 2 });
  await world.run(async () => {
    const client = await world.connect({ members: [2], discover: false });
    await client.counter("visits").add(1);
    await world.sleep(2_000);
    expect(client.status().endpoints).toEqual(at(2));
    await client.close();
  });
});

test("a client that publishes endpoints itself is rejected, and no client receives them", async () => {
  const world = simulate({ members: 3, seed: 4 });
  await world.run(async () => {
    const [honest, other] = [await world.connect({ members: [2] }), await world.connect({ members: [2] })];
    const value = JSON.stringify("http://elsewhere.example.org");
    const lie = { type: "put", map: ENDPOINTS, key: "1", value, isLeased: false } as const;
    void serviceOf(other)
      .submit(lie, () => true)
      .catch(() => {});
    await until(world, () => other.signal.aborted);
    expect(other.signal.reason).toMatchObject({ code: "client-refused" });
    await world.sleep(500);
    expect(honest.status().endpoints).toEqual(at(2, 1, 3));
    expect(() => honest.map(ENDPOINTS)).toThrow(/to be one that does not begin with coterie\/, which is reserved/);
    await honest.close();
  });
});

test("a client that was given the first member continues in one session after all members are replaced one by one", async () => {
  const world = simulate({ members: 3, seed: 3 });
  await world.run(async () => {
    const client = await world.connect({ members: [1] });
    const counter = client.counter("visits");
    let isOver = false;
    let added = 0;
    const counting = (async () => {
      for (; !isOver; added++) expect(await counter.add(1)).toBe(added + 1);
    })();
    await until(world, () => added > 0);
    const { session } = client.status();
    for (const old of [1, 2, 3]) {
      await world.add(old + 3);
      await world.member(old + 3).cluster.settled();
      const before = added;
      await world.remove(old);
      await until(world, () => !world.isUp(old) || world.member(old).signal.aborted);
      world.kill(old);
      await until(world, () => added > before + 5);
    }
    isOver = true;
    await counting;
    expect(await world.member(6).counter("visits").get()).toBe(added);
    expect(session).not.toBeNull();
    expect(client.status()).toMatchObject({ session });
    await until(world, () => !client.status().endpoints.includes(endpointOf(3)));
    expect(client.status().endpoints).toEqual(at(1, 4, 5, 6));
    expect([4, 5, 6]).toContain(client.status().member);
    await client.close();
  });
});

test("an endpoint that belongs to no member is removed once the members change", async () => {
  const world = simulate({ members: 3, seed: 5 });
  await world.run(async () => {
    const elsewhere = "http://elsewhere.example.org";
    const { host } = (world.member(2) as JoinedMember).state;
    const stray = {
      type: "put",
      map: ENDPOINTS,
      key: "66",
      value: JSON.stringify(elsewhere),
      isLeased: false,
    } as const;
    await host.submit(stray, () => true);
    const client = await world.connect({ members: [2] });
    await until(world, () => client.status().endpoints.includes(elsewhere));
    await world.add(4);
    await until(world, () => !client.status().endpoints.includes(elsewhere));
    await until(world, () => client.status().endpoints.length === 4);
    await client.close();
  });
});

test("a client with the largest number of reads learns of a change as soon as it reads less", async () => {
  const world = simulate({ members: 3, seed: 6 });
  await world.run(async () => {
    const client = await world.connect({ members: [2] });
    await until(world, () => client.status().endpoints.length === 3);
    let refused = 0;
    let isOver = false;
    const reads = Array.from({ length: 1_500 }, async () => {
      while (!isOver)
        await serviceOf(client)
          .query({ type: "count", name: "visits" })
          .catch(async (error: unknown) => {
            expect(error).toMatchObject({ code: "overloaded" });
            refused += 1;
            await world.sleep(1);
          });
    });
    const { host } = (world.member(1) as JoinedMember).state;
    const all = { type: "range", map: ENDPOINTS, from: "", to: null, limit: 10 } as const;
    await world.add(4);
    for (let told = 0; told < 4; await world.sleep(5)) told = (await host.query(all)).answer.entries.length;
    expect(refused).toBeGreaterThan(0);
    isOver = true;
    await Promise.all(reads);
    await until(world, () => client.status().endpoints.includes(endpointOf(4)));
    await client.close();
  });
});

test("a client that the log has discarded is identified by its new number", async () => {
  const world = simulate({ members: 3, seed: 7 });
  await world.run(async () => {
    const client = await world.connect({ members: [2] });
    const { client: first } = client.status();
    (serviceOf(client) as RemoteService).link.beginAnew();
    await until(world, () => client.status().moves === 1 && client.status().member !== null);
    await client.counter("visits").add(1);
    const { client: member, session } = client.status();
    expect(member).not.toBe(first);
    const { answer } = await serviceOf(client).query({ type: "sessions" });
    expect(answer.sessions).toContainEqual({ session, member });
    await client.close();
  });
});
