/**
 * Message round trips per second between two hosts in two processes, beside two bare `node:net` echoes of equally many
 * bytes (`bare-echo.ts`) in the same run: rounds of the three in turn, medians, and the ratios round by round.
 *
 *     npx coterie bench host [--seconds 1 --rounds 7]
 */
import { fork } from "node:child_process";
import { connect } from "node:net";
import { fileURLToPath } from "node:url";
import { type EchoStyle, onEcho } from "./bare-echo.ts";
import { commandLine } from "./command-line.ts";
import { MESSAGE_BYTES, type PingPongHost, pingPongHost } from "./ping-pong.ts";

const { values } = commandLine("host", {
  seconds: { such: "<s>", default: "1", help: "how long each measurement takes (default: 1)" },
  rounds: { such: "<n>", default: "7", help: "how many measurements of each, in turns (default: 7)" },
});
const seconds = Number(values.seconds);
const rounds = Number(values.rounds);
const echoPorts = { bulk: 27_410, message: 27_411 };
const [hostPort, ownPort] = [27_412, 27_413];

type Run = (inFlight: number, ms: number) => Promise<number>;

/** Keeps `inFlight` messages on the way; whatever comes back goes out again. */
const bareEcho =
  (style: EchoStyle): Run =>
  (inFlight, ms) =>
    new Promise((resolve, reject) => {
      let trips = 0;
      const socket = connect(echoPorts[style], "127.0.0.1", () => {
        socket.setNoDelay(true);
        const began = performance.now();
        setTimeout(() => {
          socket.destroy();
          resolve((trips / (performance.now() - began)) * 1_000);
        }, ms);
        socket.write(Buffer.alloc(MESSAGE_BYTES * inFlight));
      });
      onEcho(socket, style, MESSAGE_BYTES, (messages) => {
        trips += messages;
        return true;
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

const peers = [
  await peer("bulk", echoPorts.bulk),
  await peer("message", echoPorts.message),
  await peer("host", hostPort, ownPort),
];
const pongs = { on: () => false };
const host = pingPongHost({ self: 0, ports: [ownPort, hostPort], onPong: () => pongs.on() });
await host.open();
const runs = { bulk: bareEcho("bulk"), message: bareEcho("message"), host: hostRun(host, pongs) };

console.log(
  `round trips per second, two processes, ${MESSAGE_BYTES} bytes each way, median [min–max] of ${rounds} × ${seconds} s`,
);
for (const inFlight of [1, 64]) {
  const figures: Record<keyof typeof runs, number>[] = [];
  for (let round = -1; round < rounds; round++) {
    const figure = {
      bulk: await runs.bulk(inFlight, seconds * 1_000),
      message: await runs.message(inFlight, seconds * 1_000),
      host: await runs.host(inFlight, seconds * 1_000),
    };
    if (round >= 0) figures.push(figure); // The first round warms up.
  }
  console.log(`
${inFlight} in flight
  bare echo in bulk     ${spread(figures.map(({ bulk }) => bulk))}
  bare echo by message  ${spread(figures.map(({ message }) => message))}
  host                  ${spread(figures.map((figure) => figure.host))}
  host / by message     ${spread(
    figures.map((figure) => figure.host / figure.message),
    2,
  )}
  host / in bulk        ${spread(
    figures.map((figure) => figure.host / figure.bulk),
    2,
  )}`);
}
await host.close();
for (const each of peers) each.disconnect();
process.exit(0);
