import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { afterEach, expect, it } from "vitest";
import { listenToTrace } from "./trace-intake.ts";

let end: () => void = () => {};
afterEach(() => end());

it("marks the time between two connections as a gap, and reports the last entries before the end", async () => {
  let connections = 0;
  const server = createServer((_request, response) => {
    connections += 1;
    response.write(`${JSON.stringify({ at: connections, node: 3, kind: "timeout", timer: "beat" })}\n`);
    if (connections === 1) response.end();
    else setTimeout(() => response.end(`${JSON.stringify({ at: 9, node: 3, kind: "timeout", timer: "last" })}\n`), 50);
  });
  end = () => server.close();
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const seen: unknown[] = [];
  let stop = async (): Promise<void> => {};
  await new Promise<void>((resolve) => {
    stop = listenToTrace(`http://127.0.0.1:${(server.address() as AddressInfo).port}`, 3, (entry, line) => {
      expect(JSON.parse(line)).toEqual(entry);
      seen.push(entry.kind === "timeout" ? entry.timer : entry.kind);
      if (seen.length === 3) resolve();
    });
  });
  await stop();
  expect(seen).toEqual(["beat", "gap", "beat", "last"]);
});
