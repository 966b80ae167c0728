const zlib = require('zlib'), crypto = require('crypto');
const { Worker, isMainThread, parentPort } = require('worker_threads');
function work(seed) {
  let text = '';
  for (let i = 0; i < 200000; i++) text += (i * seed % 9973).toString(36);
  const packed = zlib.gzipSync(Buffer.from(text), { level: 6 });
  return crypto.createHash('sha256').update(zlib.gunzipSync(packed)).digest('hex');
}
if (isMainThread) {
  console.log(work(7));
  new Worker(__filename).on('message', (m) => console.log(m)).on('exit', (code) => { process.exitCode = 5 + code; });
} else parentPort.postMessage(work(11));
