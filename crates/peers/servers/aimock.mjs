// A model API of somebody else's making for the tests: `aimock`, on a free port of the loopback interface.
//
// The first line of its standard input is what it answers, as aimock's fixtures. At each `requests` that follows, it says
// what it has been sent, as it has understood it. Leaves when its standard input ends.

import { LLMock } from '@copilotkit/aimock';
import { createInterface } from 'node:readline';

const KEY = 'k-1';

const lines = createInterface(process.stdin).on('close', () => process.exit(0))[Symbol.asyncIterator]();
const { value: fixtures } = await lines.next();
const mock = new LLMock({ port: 0, strict: true, auth: { apiKeys: [KEY] } });
mock.addFixturesFromJSON(JSON.parse(fixtures));
await mock.start();
console.log(mock.url);
for await (const line of lines) {
  if (line === 'requests') console.log(JSON.stringify(mock.getRequests()));
}
