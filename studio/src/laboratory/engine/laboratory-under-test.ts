/** The laboratory for tests: it runs without a worker and uses the repository's scenarios. */
import { readFile } from "node:fs/promises";
import { Laboratory } from "./laboratory.ts";

const folder = new URL("../../../../scenarios/", import.meta.url);

export class TestedLaboratory extends Laboratory {
  constructor() {
    super((name) => readFile(new URL(`${name}.yaml`, folder), "utf8"));
  }
}
