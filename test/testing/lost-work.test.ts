/** Checks that `use()` does not report success if the lock is lost before the work has ended. */
import { expect, test } from "vitest";
import type { Grant } from "../../src/index.ts";
import { simulate } from "../../src/testing/index.ts";
import { SimulatedEngine } from "../engines/simulated-engine.ts";

type Use = (work: (grant: Grant) => Promise<string>) => Promise<string>;

interface Users {
  readonly mutex: (name: string) => { readonly use: Use };
  readonly semaphore: (name: string, options: { permits: number }) => { readonly use: Use };
}

const usesOf = (user: Users): readonly Use[] => [
  (work) => user.mutex("report").use(work),
  (work) => user.semaphore("reports", { permits: 1 }).use(work),
];

const untilLost = ({ signal }: Grant): Promise<unknown> =>
  new Promise((resolve) => signal.addEventListener("abort", resolve));

/** @param cutOff makes the holder lose its grants */
async function expectLosses(uses: readonly Use[], cutOff: () => void, mend: () => void): Promise<void> {
  for (const use of uses) {
    let running = (): void => {};
    const begun = new Promise<void>((resolve) => {
      running = resolve;
    });
    const succeeding = use(async (grant) => {
      running();
      await untilLost(grant);
      return "written";
    });
    const told = expect(succeeding).rejects.toMatchObject({ code: "grant-lost", phase: "lost" });
    await begun;
    cutOff();
    await told;
    mend();
    await expect(use(() => Promise.resolve("written"))).resolves.toBe("written");
    let isAgain = (): void => {};
    const again = new Promise<void>((resolve) => {
      isAgain = resolve;
    });
    const failing = use(async (grant) => {
      isAgain();
      await untilLost(grant);
      throw new Error("the disk is full");
    });
    const failed = expect(failing).rejects.toThrow("the disk is full");
    await again;
    cutOff();
    await failed;
    mend();
    const early = use(async (grant) => {
      await grant.release();
      return "released by the work";
    });
    await expect(early).resolves.toBe("released by the work");
  }
}

test("use() of a member rejects with the loss, or with the error of the work", async () => {
  const world = simulate({ members: 3 });
  await world.run(async () => {
    const member = world.member(1);
    const cutOff = (): void => world.partition([1], [2, 3]);
    await expectLosses(usesOf(member), cutOff, () => world.heal());
  });
});

test("use() of a client rejects with the loss, or with the error of the work", async () => {
  const world = simulate({ members: 3 });
  await world.run(async () => {
    const client = await world.connect({ machine: 1_007 });
    await expectLosses(
      usesOf(client),
      () => world.partition([1_007], [1, 2, 3]),
      () => world.heal(),
    );
  });
});

test("use() of an engine rejects with the loss, or with the error of the work", async () => {
  const engine = new SimulatedEngine(1);
  await engine.run(async () => {
    const process = { isUp: true, isCutOff: false };
    const member = await engine.join({}, process);
    const cut = (isCutOff: boolean) => (): void => {
      process.isCutOff = isCutOff;
    };
    await expectLosses(usesOf(member), cut(true), cut(false));
    await member.leave();
  });
});

test("use() rejects when its member leaves before the work has ended", async () => {
  const world = simulate({ members: 3 });
  await world.run(async () => {
    const used = world
      .member(1)
      .mutex("report")
      .use(async (grant) => {
        void world.member(1).leave();
        await untilLost(grant);
        return "written";
      });
    await expect(used).rejects.toMatchObject({ code: "member-left", phase: "lost" });
  });
});
