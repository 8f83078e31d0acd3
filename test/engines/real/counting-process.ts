/**
 * Increments its parent's counter repeatedly: under a lock, it reads the counter and writes the value plus one, with
 * its token.
 */
import { join } from "../../../src/index.ts";
import { realEngines } from "./engines.ts";

const [name, ports = ""] = process.argv.slice(2);
const real = realEngines.find((each) => each.name === name);
if (real === undefined) throw new Error(`no engine ${name}`);
const member = await join({ engine: real.engine(ports.split(",").map(Number)), sessionMs: 3_000, timeoutMs: 60_000 });

const answers = new Map<number, (value: number) => void>();
let number = 0;
process.on("message", ({ id, value }: { id: number; value: number }) => {
  answers.get(id)?.(value);
  answers.delete(id);
});
process.on("disconnect", () => process.exit());

const ask = (token: number, value: number | null): Promise<number> => {
  number += 1;
  const id = number;
  return new Promise((resolve) => {
    answers.set(id, resolve);
    process.send?.({ id, token, value });
  });
};

for (;;) {
  const lock = await member.mutex("counter").acquire();
  const value = await ask(lock.token, null);
  await new Promise((resolve) => setTimeout(resolve, 20));
  if (value >= 0) await ask(lock.token, value + 1);
  await lock.release();
}
