/**
 * Checks that `join()` reports the error of the engine's client if no engine answers, and that nothing keeps the
 * process alive.
 */
import { spawnSync } from "node:child_process";
import { once } from "node:events";
import { createServer } from "node:net";
import { expect, test } from "vitest";
import { PATIENCE_MS } from "../patience.ts";

const built = (file: string): string => new URL(`../../dist/${file}`, import.meta.url).href;

const options: Readonly<Record<string, (port: number) => object>> = {
  etcd: (port) => ({ endpoints: [`http://127.0.0.1:${port}`] }),
  nats: (port) => ({ servers: [`nats://127.0.0.1:${port}`] }),
  postgres: (port) => ({ url: `postgres://nobody@127.0.0.1:${port}/postgres` }),
  redis: (port) => ({ url: `redis://127.0.0.1:${port}` }),
  zookeeper: (port) => ({ servers: [`127.0.0.1:${port}`] }),
};

/** Returns a port without a listener. */
async function closedPort(): Promise<number> {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as { port: number };
  server.close();
  await once(server, "close");
  return port;
}

test.each(Object.keys(options))("%s", async (engine) => {
  const given = JSON.stringify(options[engine]?.(await closedPort()));
  const program = `
    const { join } = await import("${built("index.js")}");
    const { ${engine} } = await import("${built(`engines/${engine}.js`)}");
    await join({ engine: ${engine}(${given}), timeoutMs: 1_000 }).catch(({ code, message }) => console.log(code, message));`;
  const { stdout, signal } = spawnSync(process.execPath, ["--input-type=module", "--eval", program], {
    encoding: "utf8",
    timeout: PATIENCE_MS,
  });
  expect(signal, "which ends what does not end by itself").toBeNull();
  expect(stdout).toMatch(new RegExp(`^no-endpoint ${engine} did not open a session within 1000 ms: .*refused`, "i"));
});
