// Opens a notebook with the library that JupyterLab and VS Code use, over the newer framing.
import { createRequire } from 'node:module';

const [packages, url, token] = process.argv.slice(2);
const require = createRequire(`${packages}/`);
const { KernelManager, ServerConnection, SessionManager } = require('@jupyterlab/services');
const serverSettings = ServerConnection.makeSettings({
  baseUrl: url, wsUrl: url.replace('http', 'ws'), token, appendToken: true
});
const kernelManager = new KernelManager({ serverSettings });
const manager = new SessionManager({ serverSettings, kernelManager });
await manager.ready;
const session = await manager.startNew({
  path: 'dive.ipynb', name: 'dive', type: 'notebook', kernel: { name: 'python3' }
});
const kernel = session.kernel;
const told = { implementation: (await kernel.info).implementation };
const future = kernel.requestExecute({ code: "print('deep'); 6 * 7" });
told.kinds = [];
future.onIOPub = message => told.kinds.push(message.header.msg_type);
told.status = (await future.done).content.status;
told.matches = (await kernel.requestComplete({ code: 'pri', cursor_pos: 3 })).content.matches;

const spinning = kernel.requestExecute({ code: "print('on')\nwhile True: pass" });
await new Promise(resolve => {
  spinning.onIOPub = message => { if (message.header.msg_type === 'stream') resolve(); };
});
await kernel.interrupt();
told.interrupted = (await spinning.done).content.ename;

await kernel.requestExecute({ code: 'depth = 40' }).done;
await kernel.restart();
told.restarted = (await kernel.requestExecute({ code: 'depth' }).done).content.ename;
told.protocol = kernel._ws.protocol;
await session.shutdown();
console.log(JSON.stringify(told));
process.exit(0);
