/** Checks the limit on the names that a client follows, and the error when it is exceeded. */
import { expect, test, vi } from "vitest";
import { simulate } from "../../src/testing/index.ts";

/** This includes the name for the members' endpoints. */
const MOST = 1_000;
const refusal = {
  code: "overloaded",
  phase: "never-sent",
  message: expect.stringContaining(`this client already follows ${MOST} names, which is the maximum`),
};

const thrownBy = (work: () => unknown): unknown => {
  try {
    work();
  } catch (error) {
    return error;
  }
};

test("a client at the limit of followed names is refused one more, and loses no update of the others", async () => {
  const world = simulate({ members: 1, seed: 1 });
  await world.run(async () => {
    const client = await world.connect();
    const grant = await client.mutex("precious").acquire();
    const watches = Array.from({ length: MOST - 1 }, (_, at) => client.map(`m${at}`).watch());
    const { signal } = new AbortController();
    const listen = vi.spyOn(signal, "addEventListener");
    expect(thrownBy(() => client.map("more").watch({ signal }))).toMatchObject(refusal);
    expect(listen).not.toHaveBeenCalled();
    expect(thrownBy(() => client.election("more"))).toMatchObject(refusal);
    const told = client.map("m5").watch().next(); // The client already follows this name.
    await world.sleep(1_000);
    await client.map("m5").put("k", 5);
    expect(await told).toMatchObject({ value: { value: 5 } });
    expect(grant.isHeld).toBe(true);
    expect(client.status().moves).toBe(0);
    await watches[7]?.return?.();
    expect(await client.election("more").lead(() => "led")).toBe("led");
    await client.close();
  });
});

test("elections that a client no longer uses free capacity for watches and for other elections", async () => {
  const world = simulate({ members: 1, seed: 1 });
  await world.run(async () => {
    const client = await world.connect();
    const used = client.election("used").watch();
    for (let number = 0; number < MOST; number++) client.election(`e${number}`);
    const watch = client.map("m").watch();
    const told = watch.next();
    await world.sleep(1_000);
    await client.map("m").put("k", 1);
    expect(await told).toMatchObject({ value: { value: 1 } });
    const led = client.election("used").lead(() => world.sleep(10));
    expect(await used.next()).toMatchObject({ value: { leader: null } });
    expect(await used.next()).toMatchObject({ value: { leader: client.status().client } });
    await led;
    expect(client.status().moves).toBe(0);
    await client.close();
  });
});
