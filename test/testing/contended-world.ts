/**
 * A world with three members that compete for a lock, under random faults. When run as a program, it prints its log.
 */
import { simulate } from "../../src/testing/index.ts";

export async function logOf(seed: number): Promise<string> {
  const world = simulate({
    members: 3,
    seed,
    faults: "random",
    async program(member, { sleep, random, log }) {
      for (;;) {
        const work = async ({ token }: { token: number }): Promise<void> => {
          log(`has token ${token}`);
          await sleep(100 * random());
        };
        await member
          .mutex("invoice")
          .use(work, { timeoutMs: 2_000 })
          .catch((error: unknown) => log(String(error)));
        await sleep(50 * random());
      }
    },
  });
  await world.run(8_000);
  return [...world.log, world.digest, world.events].join("\n");
}

const [, program, seed] = process.argv;
if (program?.endsWith("contended-world.ts")) process.stdout.write(await logOf(Number(seed)));
