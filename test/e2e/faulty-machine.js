/**
 * Simulates wrong clocks and a slow disk. It is loaded before a member's program (`node --import`) and rereads a file
 * with its settings. The module's URL names the platform module and the file.
 */
import { readFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";

const LOOK_EVERY_MS = 50;
const { searchParams } = new URL(import.meta.url);
const { realPlatform } = await import(searchParams.get("platform"));
const { clock, timers, disk } = realPlatform;
const [steady, wall] = [clock.now, clock.wall];
const [after, every, claim] = [timers.after, timers.every, disk.claim];

let faults = { rate: 1, syncMs: 0 };
/** The last change of the rate: the real times, and the times on the member's clocks. */
let since = { steady: steady(), wall: wall(), shown: steady(), shownWall: wall() };

function look() {
  let found = faults;
  try {
    found = JSON.parse(readFileSync(searchParams.get("faults"), "utf8"));
  } catch {
    return; // The file is being written.
  }
  if (found.rate !== faults.rate) since = { steady: steady(), wall: wall(), shown: shown(), shownWall: shownWall() };
  faults = found;
}

function shown() {
  return since.shown + (steady() - since.steady) * faults.rate;
}

function shownWall() {
  return Math.floor(since.shownWall + (wall() - since.wall) * faults.rate);
}

const slow = (file) =>
  file && {
    ...file,
    writeDurably: (bytes, at) => delayed(() => file.writeDurably(bytes, at)),
    datasync: () => delayed(() => file.datasync()),
    sync: () => delayed(() => file.sync()),
  };

async function delayed(sync) {
  if (faults.syncMs > 0) await sleep(Math.random() * 2 * faults.syncMs);
  return sync();
}

look();
setInterval(look, LOOK_EVERY_MS).unref();
Object.assign(clock, { now: shown, wall: shownWall });
Object.assign(timers, {
  after: (ms, run) => after(ms / faults.rate, run),
  every: (ms, run) => every(ms / faults.rate, run),
});
disk.claim = async (path) => {
  const folder = await claim(path);
  return {
    ...folder,
    open: async (name) => slow(await folder.open(name)),
    create: async (name) => slow(await folder.create(name)),
  };
};
