/** Ports of this machine that nobody listens on, below the range from which the system draws those of dialers. */
import { createServer } from "node:net";

const FIRST = 20_000;
const LAST = 32_000;
let next = FIRST + Math.floor(Math.random() * (LAST - FIRST));

export async function freePorts(count: number): Promise<number[]> {
  const found: number[] = [];
  for (let tried = 0; found.length < count && tried < LAST - FIRST; tried++) {
    next = next < LAST ? next + 1 : FIRST;
    if (await isFree(next)) found.push(next);
  }
  return found;
}

function isFree(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const server = createServer();
    server.once("error", () => resolve(false));
    server.listen(port, "127.0.0.1", () => server.close(() => resolve(true)));
  });
}
