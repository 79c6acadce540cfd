// Preloaded into a program that is measured: writes its seconds of CPU before and after its first HTTP call to the file CPU_METER.

const { subscribe, unsubscribe } = require("node:diagnostics_channel");
const { writeFileSync } = require("node:fs");

const SENT = "undici:client:sendHeaders";
let start = 0;
const onSent = () => {
  unsubscribe(SENT, onSent);
  start = cpuSeconds();
};
subscribe(SENT, onSent);
process.on("exit", () => {
  writeFileSync(process.env.CPU_METER, JSON.stringify({ start, work: cpuSeconds() - start }));
});

function cpuSeconds() {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1e6;
}
