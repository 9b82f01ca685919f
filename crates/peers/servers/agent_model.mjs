// A model API for agents of other makers, in the three formats that they speak. It has the agent call one tool, and says
// a sentence when it has the result.
//
// Usage: agent_model.mjs TOOL DEFAULT. TOOL is the end of the tool's name, DEFAULT its name if the agent does not list
// it. Prints the address, and then a line of JSON for the list and for the result.

import { createServer } from 'node:http';

const [, , tool, usual] = process.argv;
const args = { text: 'ahoy' };
const say = (value) => console.log(JSON.stringify(value));
const stream = (response, events) => {
  response.writeHead(200, { 'content-type': 'text/event-stream' });
  for (const data of events) response.write(`${data.type ? `event: ${data.type}\n` : ''}data: ${JSON.stringify(data)}\n\n`);
  response.end();
};

/** Finds the tool among what the agent lists: plain functions, or functions in a namespace. */
function find(tools) {
  for (const one of tools) {
    const inner = one.functionDeclarations ?? one.tools;
    const within = inner && find(inner);
    if (within) return one.type === 'namespace' ? { ...within, namespace: one.name } : within;
    if (one.name?.endsWith(tool)) return { name: one.name };
  }
  return undefined;
}

function anthropic(result, called) {
  const block = result ? { type: 'text', text: '' } : { type: 'tool_use', id: 'toolu_1', name: called.name, input: {} };
  const delta = result
    ? { type: 'text_delta', text: 'done' }
    : { type: 'input_json_delta', partial_json: JSON.stringify(args) };
  const usage = { input_tokens: 1, output_tokens: 1 };
  const message = { id: 'msg_1', type: 'message', role: 'assistant', model: 'm', content: [], stop_reason: null, usage };
  return [
    { type: 'message_start', message },
    { type: 'content_block_start', index: 0, content_block: block },
    { type: 'content_block_delta', index: 0, delta },
    { type: 'content_block_stop', index: 0 },
    { type: 'message_delta', delta: { stop_reason: result ? 'end_turn' : 'tool_use' }, usage },
    { type: 'message_stop' },
  ];
}

function responses(result, called) {
  const content = [{ type: 'output_text', text: 'done', annotations: [] }];
  const item = result
    ? { type: 'message', id: 'msg_1', role: 'assistant', status: 'completed', content }
    : { type: 'function_call', id: 'fc_1', call_id: 'call_1', ...called, arguments: JSON.stringify(args) };
  const usage = { input_tokens: 1, output_tokens: 1, total_tokens: 2 };
  const response = { id: 'resp_1', object: 'response', status: 'completed', output: [item], usage };
  return [
    { type: 'response.created', response: { ...response, status: 'in_progress', output: [] } },
    { type: 'response.output_item.added', output_index: 0, item },
    { type: 'response.output_item.done', output_index: 0, item },
    { type: 'response.completed', response },
  ];
}

function gemini(result, called) {
  const part = result ? { text: 'done' } : { functionCall: { name: called.name, args } };
  return [{ candidates: [{ content: { role: 'model', parts: [part] }, finishReason: 'STOP', index: 0 }] }];
}

const FORMATS = [
  [/\/messages/, /"tool_result"/, anthropic],
  [/\/responses/, /"function_call_output"/, responses],
  [/GenerateContent|generateContent/, /"functionResponse"/, gemini],
];

const server = createServer(async (request, response) => {
  let body = '';
  for await (const chunk of request) body += chunk;
  const format = FORMATS.find(([path]) => path.test(request.url));
  if (!format || request.method !== 'POST') return response.writeHead(404).end('{}');
  const [, hasResult, write] = format;
  const listed = find(JSON.parse(body).tools ?? []);
  const isResult = hasResult.test(body);
  say(isResult ? { result: body.includes('ahoy') } : { listed: listed?.name ?? null });
  stream(response, write(isResult, listed ?? { name: usual }));
});
server.listen(0, '127.0.0.1', () => say({ url: `http://127.0.0.1:${server.address().port}` }));
process.stdin.on('end', () => process.exit(0)).resume();
