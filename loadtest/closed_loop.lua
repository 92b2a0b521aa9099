-- For wrk: posts the files of a folder in turn; prints what came back as one line of JSON.
-- Its arguments are the folder and, for each review, a path, which names the file by its place.

local requests, last = {}, 0

function init(arguments)
  for number = 2, #arguments do
    local file = assert(io.open(arguments[1] .. "/" .. (number - 2), "rb"))
    local headers = { ["Content-Type"] = "application/json" }
    requests[number - 1] = wrk.format("POST", arguments[number], headers, file:read("*a"))
    file:close()
  end
end

function request()
  last = last % #requests + 1
  return requests[last]
end

function done(summary)
  local errors = summary.errors
  io.write(string.format('{"answers":%d,"refused":%d,"failed":%d}\n', summary.requests, errors.status,
    errors.connect + errors.read + errors.write + errors.timeout))
end
