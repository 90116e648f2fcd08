// BullMQ: one process with concurrency 100.
//
//     node bullmq.mjs version | worker | enqueue <count>
//
// Packages are found beside this file, in a folder above it, or by NODE_PATH.

import { renameSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";

const require = createRequire(import.meta.url);
const { Queue, Worker } = require("bullmq");
const Redis = require("ioredis");

const NAME = "benchmark";
const seconds = () => Number(process.hrtime.bigint()) / 1e9; // the monotonic clock, as Python's

function connect() {
  const url = process.env.BENCHMARK_URL;
  const options = { maxRetriesPerRequest: null };
  if (!url.startsWith("unix://")) return new Redis(url, options);
  return new Redis({ path: url.slice("unix://".length).split("?")[0], ...options });
}

function mark(name) {
  const folder = process.env.BENCHMARK_FOLDER;
  writeFileSync(join(folder, `.${name}`), String(seconds()));
  renameSync(join(folder, `.${name}`), join(folder, name));
}

function version() {
  const path = require.resolve("bullmq").split("/bullmq/")[0];
  console.log(require(join(path, "bullmq", "package.json")).version);
}

async function enqueue(count) {
  const connection = connect();
  const queue = new Queue(NAME, { connection });
  await queue.waitUntilReady();
  const began = seconds();
  await queue.add("note", { name: "first" });
  for (let number = 2; number < count; number++) await queue.add("noop", {});
  await queue.add("note", { name: "last" });
  const took = seconds() - began;
  await queue.close();
  connection.disconnect();
  console.log(took);
}

function work() {
  const run = async (job) => {
    if (job.name === "note") mark(job.data.name);
  };
  const worker = new Worker(NAME, run, { connection: connect(), concurrency: 100 });
  worker.on("error", (error) => console.error(error));
}

const [what, count] = process.argv.slice(2);
if (what === "version") version();
else if (what === "enqueue") await enqueue(Number(count));
else work();
