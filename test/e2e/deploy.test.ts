/**
 * Checks the files of examples/deploy: the commands of Compose, in network namespaces whose host names appear late, and
 * the fields of the Kubernetes manifest that members depend on. The former needs Linux and root.
 */
import { execFileSync, spawn } from "node:child_process";
import { createHash } from "node:crypto";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterEach, expect, test } from "vitest";
import { parse, parseAllDocuments } from "yaml";
import { readServiceConfig } from "../../src/cluster/config.ts";
import { type Namespaces, namespaces } from "../network/namespaces.ts";
import { copied, entrypoint, installs } from "../package/dockerfile.ts";
import { PATIENCE_MS } from "../patience.ts";
import { CLI, until } from "./cluster-under-test.ts";

const examples = fileURLToPath(new URL("../../examples/deploy", import.meta.url));
const read = (file: string): string => readFileSync(join(examples, file), "utf8");

interface Service {
  readonly build: string;
  readonly command: readonly string[];
  readonly volumes: readonly string[];
  readonly networks: { readonly coterie: { readonly aliases: readonly string[] } };
}
const { services } = parse(read("compose.yaml"), { merge: true }) as { services: Readonly<Record<string, Service>> };

const folder = mkdtempSync(join(tmpdir(), "coterie-deploy-"));
const cleaning: (() => void)[] = [() => rmSync(folder, { recursive: true, force: true })];
afterEach(() => {
  for (const clean of cleaning.splice(0).reverse()) clean();
});

/** Returns the arguments of a service, with its volumes replaced by folders. */
function wordsOf({ command, volumes }: Service): string[] {
  const places = new Map(volumes.map((volume) => volume.split(":").slice(0, 2).reverse() as [string, string]));
  return command.map((word) => {
    const source = places.get(word);
    return source === undefined ? word : join(folder, source);
  });
}

/** Writes a copy of the config with local folders instead of the container's paths. */
function writeConfig(): void {
  const text = read("cluster.json")
    .replaceAll('"/certs/', `"${folder}/certs/`)
    .replace('"/data"', `"${folder}/data-{id}"`);
  writeFileSync(join(folder, "cluster.json"), text);
}

class Deployed {
  stderr = "";
  stdout = "";
  constructor(within: readonly string[], words: readonly string[]) {
    const [command, ...args] = [...within, process.execPath, CLI, ...words];
    const child = spawn(command as string, args, { stdio: ["ignore", "pipe", "pipe"] });
    child.stdout.setEncoding("utf8").on("data", (text: string) => {
      this.stdout += text;
    });
    child.stderr.setEncoding("utf8").on("data", (text: string) => {
      this.stderr += text;
    });
    cleaning.push(() => child.kill("SIGKILL"));
  }

  get standing(): string {
    return `it said ${this.stdout}${this.stderr}`;
  }
}

function machines(): Namespaces {
  const made = namespaces(Object.keys(services).length);
  cleaning.push(() => made.close());
  return made;
}

test("the Compose services become ready even if names appear late, and serve clients by token", {
  tags: ["long"],
}, async () => {
  const hosts = machines();
  const run = (index: number, ...words: string[]): string => {
    const [command, ...args] = [...hosts.within(index), process.execPath, CLI, ...words];
    return execFileSync(command as string, args, { encoding: "utf8", timeout: PATIENCE_MS });
  };
  const all = Object.values(services);
  const names = all.map(({ networks }) => networks.coterie.aliases[0] as string);
  run(0, "cert", "0", "1", "2", "--out", join(folder, "certs"), "--host", ...names);
  writeConfig();
  const token = "a token of this test";
  const sha256 = createHash("sha256").update(token).digest("hex");
  const roles = JSON.parse(read("roles.json")) as { tokens: { sha256: string }[] };
  writeFileSync(join(folder, "roles.json"), JSON.stringify({ tokens: [{ ...roles.tokens[0], sha256 }] }));
  writeFileSync(join(folder, "token"), token);
  const members = all.map((service, index) => new Deployed(hosts.within(index), wordsOf(service)));
  for (const member of members) await until("it listens", () => member.stdout.includes("listening"), member);
  hosts.name(Object.fromEntries(names.map((name, index) => [name, hosts.addresses[index] as string])));
  const probe = (index: number): string => {
    const script = `fetch("http://127.0.0.1:7200/readyz").then(({ status }) => console.log(status))`;
    const [command, ...args] = [...hosts.within(index), process.execPath, "-e", script];
    return execFileSync(command, args, { encoding: "utf8" }).trim();
  };
  for (const index of all.keys()) await until(`member ${index} is ready`, () => probe(index) === "200", members[index]);
  const asClient = [
    "--endpoints",
    `https://${names[1]}:7300`,
    "--ca",
    join(folder, "certs/ca.pem"),
    "--token-file",
    join(folder, "token"),
  ];
  run(0, "put", "stock", "apples", "3", ...asClient);
  expect(run(2, "get", "stock", "apples", ...asClient)).toContain("3");
});

// test/package/package.test.ts runs the installed image.
test("a member of Compose gets only its own key", () => {
  const keysOf = ({ volumes }: Service): string[] =>
    volumes
      .flatMap((volume) => /^\.\/certs\/?([^:]*)/.exec(volume)?.[1] ?? [])
      .filter((file) => !file.endsWith(".pem"));
  expect(Object.values(services).map(keysOf)).toEqual([["node-0.key"], ["node-1.key"], ["node-2.key"]]);
});

test("the image installs the tarball next to its Dockerfile, and gets no Coterie from a registry", () => {
  const words = installs.split(" ").filter((word) => !word.startsWith("--"));
  expect(words).toEqual(["npm", "install", copied.into + copied.pattern]);
  expect(copied.pattern).toMatch(/\.tgz$/);
  expect(Object.values(services).map(({ build }) => build)).toEqual([".", ".", "."]);
});

test("the manifest for Kubernetes starts all members at once, publishes names before they are ready, and probes existing endpoints", () => {
  const documents = parseAllDocuments(read("kubernetes.yaml"));
  expect(documents.flatMap(({ errors }) => errors)).toEqual([]);
  const objects: unknown[] = documents.map((document) => document.toJS() as unknown);
  const [config, service, , set] = objects as [
    { data: Record<string, string> },
    { metadata: { name: string }; spec: { clusterIP: string; publishNotReadyAddresses: boolean } },
    unknown,
    { metadata: { name: string }; spec: StatefulSetSpec },
  ];
  expect(JSON.parse(config.data["cluster.json"] as string)).toEqual(JSON.parse(read("cluster.json")));
  const { members } = readServiceConfig(join(examples, "cluster.json"));
  const { spec, metadata } = set;
  expect(Object.values(members).map(({ address }) => address.host)).toEqual(
    Array.from({ length: spec.replicas }, (_, ordinal) => `${metadata.name}-${ordinal}.${service.metadata.name}`),
  );
  expect(service.spec).toMatchObject({ clusterIP: "None", publishNotReadyAddresses: true });
  expect(spec).toMatchObject({ serviceName: service.metadata.name, podManagementPolicy: "Parallel" });
  const [container] = spec.template.spec.containers;
  expect(container?.args[0]).toMatch(/--id "\$\{HOSTNAME##\*-\}"/);
  expect(container?.args[0]).toMatch(`exec ${entrypoint[0]} node `);
  const ports = new Map(container?.ports.map(({ name, containerPort }) => [name, containerPort]));
  expect(ports.get("members")).toBe(members[0]?.listen?.port);
  expect(ports.get("admin")).toBe(members[0]?.admin.port);
  expect([container?.livenessProbe.httpGet.path, container?.readinessProbe.httpGet.path]).toEqual([
    "/healthz",
    "/readyz",
  ]);
});

test("a command in the manifest's header creates each secret", () => {
  const manifest = read("kubernetes.yaml");
  const names = [...manifest.matchAll(/secretName: ([\w-]+)/g)].map(([, name]) => name as string);
  expect(names).toHaveLength(2);
  for (const name of names)
    expect(manifest).toMatch(new RegExp(`^#.*kubectl create secret generic ${name} --from-file`, "m"));
});

interface StatefulSetSpec {
  readonly replicas: number;
  readonly template: {
    readonly spec: {
      readonly containers: readonly {
        readonly args: readonly string[];
        readonly ports: readonly { readonly name: string; readonly containerPort: number }[];
        readonly livenessProbe: { readonly httpGet: { readonly path: string } };
        readonly readinessProbe: { readonly httpGet: { readonly path: string } };
      }[];
    };
  };
}

test("stopped members are reported: by an alert each, by one if all are down, and by a tile that is green if all answer", () => {
  const [scraped] = (parse(read("prometheus.yaml")) as { scrape_configs: { job_name: string }[] }).scrape_configs;
  const up = `up{job="${scraped?.job_name}"}`;
  const { groups } = parse(read("alerts.yaml")) as { groups: { rules: { alert: string; expr: string }[] }[] };
  const rules = new Map(groups.flatMap((group) => group.rules.map(({ alert, expr }) => [alert, expr])));
  expect(rules.get("CoterieMemberDown")).toBe(`${up} == 0`);
  expect(rules.get("CoterieAllDown")).toBe(`absent(${up} == 1)`);
  const board = JSON.parse(read("grafana.json")) as { panels: Tile[] };
  const tile = board.panels.find(({ title }) => title === "Members that answer");
  expect(tile?.targets.map(({ expr }) => expr)).toEqual(['sum(up{job="$job"}) / count(up{job="$job"})']);
  expect(tile?.fieldConfig.defaults.thresholds.steps).toEqual([
    { color: "red", value: null },
    { color: "green", value: 1 },
  ]);
});

test("a rejection that needs a person is reported, and TLS rejections once they repeat", () => {
  const { groups } = parse(read("alerts.yaml")) as { groups: { rules: { alert: string; expr: string }[] }[] };
  const exprs = groups.flatMap(({ rules }) => rules.map(({ expr }) => expr));
  const reasons = exprs.flatMap(
    (expr) => /coterie_refused_total\{reason=~?"([^"]+)"\}/.exec(expr)?.[1]?.split("|") ?? [],
  );
  expect(reasons.sort()).toEqual([
    "lost-journal",
    "tls",
    "wrong-certificate",
    "wrong-cluster",
    "wrong-members",
    "wrong-version",
  ]);
  const known = readFileSync(fileURLToPath(new URL("../../docs/reference/metrics.md", import.meta.url)), "utf8");
  for (const expr of exprs.filter((each) => each.includes("wrong-members"))) expect(known).toContain(expr);
});

interface Tile {
  readonly title: string;
  readonly targets: readonly { readonly expr: string }[];
  readonly fieldConfig: {
    readonly defaults: { readonly thresholds: { readonly steps: readonly { color: string; value: number | null }[] } };
  };
}

test("the board and the alerts query existing metrics", () => {
  const known = readFileSync(fileURLToPath(new URL("../../docs/reference/metrics.md", import.meta.url)), "utf8");
  const rules = parse(read("alerts.yaml")) as { groups: { rules: { expr: string }[] }[] };
  const board = JSON.parse(read("grafana.json")) as { panels: { targets?: { expr: string }[] }[] };
  const asked = [
    ...rules.groups.flatMap((group) => group.rules.map(({ expr }) => expr)),
    ...board.panels.flatMap(({ targets = [] }) => targets.map(({ expr }) => expr)),
  ];
  const names = asked.flatMap((expr) => expr.match(/\bcoterie_\w+/g) ?? []).map((name) => name.replace(/_bucket$/, ""));
  expect(names.length).toBeGreaterThan(30);
  for (const name of new Set(names)) expect(known).toMatch(new RegExp(`\\| \`${name}[\`{]`));
});
