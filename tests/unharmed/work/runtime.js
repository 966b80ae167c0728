// Full stacks, workers, large buffers, a child that is killed, an exit code.
const { Worker, isMainThread, parentPort } = require('worker_threads');
const { spawnSync } = require('child_process');
if (!isMainThread) {
  let sum = 0;
  for (let i = 1; i <= 100; i++) sum += Buffer.alloc(i * 10000).length;
  parentPort.postMessage(sum);
} else {
  const deep = (n) => deep(n + 1) + 1;
  try { deep(0); } catch (error) { console.log('full:', error.constructor.name); }
  try { null.x; } catch (error) { console.log(error.constructor.name); }
  console.log(spawnSync('sh', ['-c', 'kill -KILL $$']).signal);
  let left = 3, sum = 0;
  for (let i = 0; i < 3; i++) {
    new Worker(__filename).on('message', (got) => { sum += got; if (!--left) console.log(sum); })
      .on('exit', () => { if (!left) process.exitCode = 5; });
  }
}
