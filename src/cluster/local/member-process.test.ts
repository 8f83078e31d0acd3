import { EventEmitter } from "node:events";
import { setImmediate as turn } from "node:timers/promises";
import { expect, test, vi } from "vitest";
import { type Exit, startProcess } from "./member-process.ts";

/** The result of Node's `spawn` without free file descriptors: no pid, no pipes, and `error` in the next tick. */
vi.mock("node:child_process", () => ({
  spawn() {
    const child = new EventEmitter();
    process.nextTick(() => child.emit("error", new Error("spawn node EMFILE")));
    return child;
  },
}));

test("a process without pipes counts as ended", async () => {
  const exits: Exit[] = [];
  const started = startProcess({ entry: "coterie.js", configFile: "cluster.json" }, 0, {
    onListening: () => {},
    onLog: () => {},
    onExit: (exit) => exits.push(exit),
  });
  expect(started.pid).toBeNull();
  started.signal("SIGTERM");
  await turn();
  expect(exits).toEqual([{ code: null, signal: null, words: "not started: spawn node EMFILE" }]);
});
