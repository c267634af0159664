// Given to node with --require: a server that was not told where to listen, or does not care, listens on this machine only.
const net = require("node:net");
const listen = net.Server.prototype.listen;
net.Server.prototype.listen = function (port, ...rest) {
	return listen.call(this, port, "127.0.0.1", rest.find((each) => typeof each === "function"));
};
