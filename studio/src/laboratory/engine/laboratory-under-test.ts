/** The laboratory without a worker, with the scenarios of the repository. */
import { readFile } from "node:fs/promises";
import { Laboratory } from "./laboratory.ts";

const folder = new URL("../../../../scenarios/", import.meta.url);

export class TestedLaboratory extends Laboratory {
  constructor() {
    super((name) => readFile(new URL(`${name}.yaml`, folder), "utf8"));
  }
}
