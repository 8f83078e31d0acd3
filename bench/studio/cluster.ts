/** A cluster of real processes for the benchmark of the studio: the built `coterie up`, and what its page is told. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import type { FeedEvent } from "../../src/cluster/feed.ts";

const READY_WITHIN_MS = 60_000;
const STOP_WITHIN_MS = 10_000;

export class Cluster {
  readonly #child: ChildProcess;
  private constructor(
    child: ChildProcess,
    readonly url: string,
  ) {
    this.#child = child;
  }

  /** @param onSpawn is called as soon as there is something to stop. */
  static async up(
    cli: string,
    protocol: string,
    nodes: number,
    onSpawn: (stop: () => Promise<void>) => void,
  ): Promise<Cluster> {
    const words = [cli, "up", "--port", "0", "--json", "--nodes", String(nodes), "--protocol", protocol];
    // In a group of its own: Ctrl-C reaches the benchmark alone, which then stops its cluster in order.
    const child = spawn(process.execPath, words, { stdio: ["ignore", "pipe", "ignore"], detached: true });
    onSpawn(() => stopped(child));
    const lines = createInterface({ input: child.stdout as NodeJS.ReadableStream });
    const [first] = await Promise.race([
      once(lines, "line", { signal: AbortSignal.timeout(READY_WITHIN_MS) }),
      once(child, "exit").then(([code]) => Promise.reject(new Error(`coterie up ended with code ${code}`))),
    ]);
    lines.on("line", () => {}); // Else the pipe fills up.
    return new Cluster(child, (JSON.parse(String(first)) as { studio: string }).studio);
  }

  stop(): Promise<void> {
    return stopped(this.#child);
  }

  /** The commands that its nodes take, as the page is told: by node. */
  async commands(): Promise<ReadonlyMap<number, readonly string[]>> {
    const ending = new AbortController();
    const response = await fetch(new URL("/api/feed", this.url), { signal: ending.signal });
    let text = "";
    for await (const chunk of response.body?.pipeThrough(new TextDecoderStream()) ?? []) {
      text += chunk;
      if (text.includes("\n\n")) break;
    }
    ending.abort();
    const event = JSON.parse(text.slice("data: ".length, text.indexOf("\n\n"))) as FeedEvent & { type: "snapshot" };
    return new Map(event.cluster.nodes.map(({ id, commands }) => [id, commands]));
  }

  async tell(node: number, command: string): Promise<void> {
    const body = JSON.stringify({ type: "command", node, command });
    const headers = { "content-type": "application/json" };
    await fetch(new URL("/api/act", this.url), { method: "POST", headers, body });
  }
}

/** By its own id, and again where it does not go. */
async function stopped(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const gone = once(child, "exit");
  child.kill("SIGTERM");
  const late = setTimeout(() => child.kill("SIGKILL"), STOP_WITHIN_MS);
  await gone;
  clearTimeout(late);
}
