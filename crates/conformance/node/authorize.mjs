// Sends the gateway's token with every request of the suite, which cannot be told to.
import http from "node:http";
import { Agent, setGlobalDispatcher } from "undici";

const name = "authorization";
const value = `Bearer ${process.env.WHARF_CONFORMANCE_TOKEN}`;

function withToken(headers) {
  if (Array.isArray(headers)) return [...headers, name, value];
  if (headers && typeof headers[Symbol.iterator] === "function") return [...headers, [name, value]];
  return { ...headers, [name]: value };
}

const authorize = (dispatch) => (options, handler) =>
  dispatch({ ...options, headers: withToken(options.headers) }, handler);

setGlobalDispatcher(new Agent().compose(authorize));

const request = http.request;
http.request = (...words) => {
  const options = words.find((word) => word && typeof word === "object" && !(word instanceof URL));
  if (options) options.headers = withToken(options.headers);
  return request(...words);
};
