/**
 * Message round trips per second between two hosts in two processes, beside a bare `node:net` echo of equally many
 * bytes in the same run: rounds of both in turn, medians and the ratio of each pair.
 *
 *     npm run bench:host [-- --seconds 1 --rounds 7]
 */
import { fork } from "node:child_process";
import { connect } from "node:net";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { PAYLOAD, type PingPongHost, pingPongHost } from "./ping-pong.ts";

const { values } = parseArgs({
  options: {
    seconds: { type: "string", default: "1" },
    rounds: { type: "string", default: "7" },
  },
});
const seconds = Number(values.seconds);
const rounds = Number(values.rounds);
const MESSAGE_BYTES = PAYLOAD.length + 16;
const [echoPort, hostPort, ownPort] = [27_411, 27_412, 27_413];

type Run = (inFlight: number, ms: number) => Promise<number>;

/** Keeps `inFlight` messages of the echo's bytes on the way; whatever comes back goes out again. */
const bareEcho: Run = (inFlight, ms) =>
  new Promise((resolve, reject) => {
    let trips = 0;
    let partial = 0;
    const socket = connect(echoPort, "127.0.0.1", () => {
      socket.setNoDelay(true);
      const began = performance.now();
      setTimeout(() => {
        socket.destroy();
        resolve((trips / (performance.now() - began)) * 1_000);
      }, ms);
      socket.write(Buffer.alloc(MESSAGE_BYTES * inFlight));
    });
    socket.on("data", (chunk: Buffer) => {
      partial += chunk.length;
      const whole = Math.floor(partial / MESSAGE_BYTES);
      partial -= whole * MESSAGE_BYTES;
      trips += whole;
      if (whole > 0) socket.write(Buffer.alloc(whole * MESSAGE_BYTES));
    });
    socket.on("error", reject);
  });

function hostRun(host: PingPongHost, pongs: { on: () => boolean }): Run {
  return (inFlight, ms) =>
    new Promise((resolve) => {
      let trips = 0;
      let running = true;
      const began = performance.now();
      pongs.on = () => {
        if (running) trips += 1;
        return running;
      };
      setTimeout(() => {
        running = false;
        // What is still on its way comes back before the next round counts.
        setTimeout(() => resolve(trips / (ms / 1_000)), 50);
        trips = (trips / (performance.now() - began)) * ms;
      }, ms);
      for (let i = 0; i < inFlight; i++) host.ping(i);
    });
}

const peerFile = fileURLToPath(new URL("./echo-peer.ts", import.meta.url).href.replace(/\.ts$/, extension()));
function extension(): string {
  return import.meta.url.endsWith(".ts") ? ".ts" : ".js";
}

async function peer(...args: (string | number)[]) {
  const child = fork(peerFile, args.map(String));
  await new Promise((resolve) => child.once("message", resolve));
  return child;
}

const median = (figures: number[]): number =>
  [...figures].sort((a, b) => a - b)[Math.floor(figures.length / 2)] as number;
const spread = (figures: number[], digits = 0): string =>
  `${median(figures).toFixed(digits)} [${Math.min(...figures).toFixed(digits)}–${Math.max(...figures).toFixed(digits)}]`;

const echo = await peer("bare", echoPort);
const other = await peer("host", hostPort, ownPort);
const pongs = { on: () => false };
const host = pingPongHost({ self: 0, ports: [ownPort, hostPort], onPong: () => pongs.on() });
await host.open();
const hosts = hostRun(host, pongs);

console.log(
  `round trips per second, two processes, ${MESSAGE_BYTES} bytes each way, median [min–max] of ${rounds} × ${seconds} s`,
);
for (const inFlight of [1, 64]) {
  await bareEcho(inFlight, 500);
  await hosts(inFlight, 1_000);
  const figures: { bare: number; host: number }[] = [];
  for (let round = 0; round < rounds; round++)
    figures.push({ bare: await bareEcho(inFlight, seconds * 1_000), host: await hosts(inFlight, seconds * 1_000) });
  const ratios = figures.map((figure) => figure.host / figure.bare);
  console.log(
    `${String(inFlight).padStart(3)} in flight   bare echo ${spread(figures.map((f) => f.bare))}   host ${spread(figures.map((f) => f.host))}   host/bare ${spread(ratios, 2)}`,
  );
}
await host.close();
echo.disconnect();
other.disconnect();
process.exit(0);
