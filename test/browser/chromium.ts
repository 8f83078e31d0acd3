/** The browser of the tests: Chromium as the system has it, headless. */
import { existsSync } from "node:fs";
import { type Browser, chromium } from "playwright-core";
import { PATIENCE_MS } from "../patience.ts";

const EXECUTABLE = process.env.COTERIE_CHROMIUM ?? "/usr/bin/chromium";

/** Why there is no browser test on this machine, or null. In CI a browser is required. */
export const noBrowser =
  existsSync(EXECUTABLE) || process.env.CI !== undefined
    ? null
    : `there is no Chromium at ${EXECUTABLE} (set COTERIE_CHROMIUM to another)`;

export function launch(): Promise<Browser> {
  return chromium.launch({
    executablePath: EXECUTABLE,
    timeout: PATIENCE_MS,
    // The sandbox needs privileges that a container lacks; the rest keeps the browser from calling home.
    args: [
      "--no-sandbox",
      "--disable-gpu",
      "--disable-quic",
      "--no-first-run",
      "--disable-background-networking",
      "--disable-component-update",
      "--disable-sync",
    ],
  });
}
