/**
 * Measures message round trips per second between two hosts in separate processes, compared with two bare `node:net`
 * echo servers that handle the same number of bytes. Rounds alternate within a run. Prints medians and the ratio for
 * each round.
 *
 *     npx coterie bench host [--seconds 1 --rounds 7]
 */
import { connect } from "node:net";
import { commandLine } from "./command-line.ts";
import { type Calls, type EchoStyle, echo, MESSAGE_BYTES, openHost } from "./host/peer.ts";
import { inTurns, OURS, printRows, Rows } from "./results.ts";
import { freePorts, Workers } from "./workers.ts";

const { values, amount, whole } = commandLine("host", {
  seconds: { such: "<s>", default: "1", help: "how long each measurement takes (default: 1)" },
  rounds: { such: "<n>", default: "7", help: "how many measurements of each, in turns (default: 7)" },
});
const ms = amount("seconds", values.seconds, 60) * 1_000;
const rounds = whole("rounds", values.rounds, 1, 1_000);
/** The pause after a round, so that messages in flight return before the next one. */
const DRAIN_MS = 50;

/**
 * Keeps `inFlight` messages in flight by resending each one when it returns.
 * @returns round trips per second
 */
type Run = (inFlight: number) => Promise<number>;

const bareEcho =
  (style: EchoStyle, port: number): Run =>
  (inFlight) =>
    new Promise((resolve, reject) => {
      let trips = 0;
      const socket = connect(port, "127.0.0.1", () => {
        const began = performance.now();
        setTimeout(() => {
          socket.destroy();
          resolve((trips / (performance.now() - began)) * 1_000);
        }, ms);
        socket.write(Buffer.alloc(MESSAGE_BYTES * inFlight));
      });
      echo(socket, style, (messages) => {
        trips += messages;
        return true;
      });
      socket.on("error", reject);
    });

const workers = new Workers<Calls>("host", "host/peer");
for (const id of [1, 2]) workers.start(id, {});
const bulk = bareEcho("bulk", await workers.call(1, "echo", "bulk"));
const byMessage = bareEcho("message", await workers.call(1, "echo", "message"));

const ports = (await freePorts(2)) as [number, number];
let onPong = (): boolean => false;
const [host] = await Promise.all([openHost(0, ports, () => onPong()), workers.call(2, "host", ports)]);
const ours: Run = (inFlight) =>
  new Promise((resolve) => {
    let [trips, isOver] = [0, false];
    const began = performance.now();
    onPong = () => {
      if (!isOver) trips += 1;
      return !isOver;
    };
    setTimeout(() => {
      isOver = true;
      const perSecond = (trips / (performance.now() - began)) * 1_000;
      setTimeout(() => resolve(perSecond), DRAIN_MS);
    }, ms);
    for (let i = 0; i < inFlight; i++) host.ping(i);
  });

const rows = new Rows("host");
for (const inFlight of [1, 64]) {
  const found = await inTurns(
    rounds,
    {
      "bare echo in bulk": () => bulk(inFlight),
      "bare echo by message": () => byMessage(inFlight),
      [OURS]: () => ours(inFlight),
    },
    { about: `${inFlight} in flight: ` },
  );
  rows.addRounds(`${inFlight} in flight`, "/s", found);
}
printRows(`round trips per second, two processes, ${MESSAGE_BYTES} bytes each way`, rows.all);
await host.close();
workers.end();
process.exit();
