import { EventEmitter } from "node:events";
import { PassThrough } from "node:stream";
import { afterEach, expect, test, vi } from "vitest";
import { noFaults } from "../../runtime/fault-injector.ts";
import type { LifecycleEvent } from "./lifecycle.ts";
import { LocalMember } from "./local-member.ts";

const processes: EventEmitter[] = [];

vi.mock("node:child_process", () => ({
  spawn() {
    const pipes = { stdin: new PassThrough(), stdout: new PassThrough(), stderr: new PassThrough() };
    const child = Object.assign(new EventEmitter(), { pid: 4_711, ...pipes });
    processes.push(child);
    return child;
  },
}));
afterEach(() => {
  vi.useRealTimers();
  processes.length = 0;
});

/** Records the events of a member that restarts when it dies. */
function member(): LifecycleEvent[] {
  vi.useFakeTimers();
  const told: LifecycleEvent[] = [];
  const member = new LocalMember(2, "127.0.0.1:1", "http://127.0.0.1:2", {
    launch: { entry: "coterie.js", configFile: "cluster.json" },
    restarts: true,
    onEvent: (event) => void told.push(event),
    log: () => {},
    record: () => {},
    changed: () => {},
    wantedFaults: () => noFaults,
  });
  member.start();
  return told;
}

test("restarts a member that ends with exit code 1", () => {
  const told = member();
  processes[0]?.emit("exit", 1, null);
  expect(told).toMatchObject([{ event: "exited", node: 2, code: 1, restartInMs: 1_000 }]);
  vi.advanceTimersByTime(1_000);
  expect(processes).toHaveLength(2);
});

test("gives up a member that ends with exit code 2, and reports it", () => {
  const told = member();
  processes[0]?.emit("exit", 2, null);
  expect(told).toMatchObject([{ event: "exited", node: 2, code: 2, restartInMs: null }]);
  vi.advanceTimersByTime(60_000);
  expect(processes).toHaveLength(1);
});
